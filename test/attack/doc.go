// SPDX-License-Identifier: Apache-2.0

// Package attack tries on a real cluster what tenants, nodes, stolen tokens and certificates of
// Moorage's, and anybody who can connect could try, and wants each attempt to be stopped by
// what is to stop it.
//
// Reads: answers of the API server, tickets, what listens. Decides: what stopped an
// attempt. Writes: what an attacker would.
package attack
