// SPDX-License-Identifier: Apache-2.0

// Package attack tries on a real cluster the attacks of tenants, nodes, holders of Moorage's stolen
// tokens and certificates, and clients that can only connect, and expects each to be stopped by the
// right thing.
//
// Reads: answers of the API server, tickets, open ports. Decides: what stopped an attempt. Writes: an
// attacker's requests.
package attack
