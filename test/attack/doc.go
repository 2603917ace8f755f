// SPDX-License-Identifier: Apache-2.0

// Package attack tries on a real cluster the attacks of tenants, nodes, holders of stolen tokens and
// certificates, and outsiders. It expects each to be stopped by the right defence.
package attack
