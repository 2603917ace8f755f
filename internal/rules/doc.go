// SPDX-License-Identifier: Apache-2.0

// Package rules holds the rules: which node may have which volume, and the next step for it. Each decision
// of Moorage is a function here, from a snapshot of the facts to a verdict or a plan. The functions have no
// memory, read no clock and do no I/O; their callers (protocol, tickets, the scheduler plugin,
// kubectl-moorage) act on the result.
//
// A decision depends on the present facts, never on the last action. That makes restarts, retries and lost
// events harmless.
//
// The package imports only the standard library and internal/ledger. All functions are safe for parallel
// use.
package rules
