// SPDX-License-Identifier: Apache-2.0

// Package lead has one process of several do the work, by a Lease.
//
// Reads: the Lease. Decides: who leads, with client-go's election. Writes: the
// Lease.
//
// A lease does not stop a paused process, and the monotonic clock of a machine that is
// suspended may stand still: a lease is over when that clock says so, or the wall
// clock. So a leader's writes have deadlines inside its lease (Term.Until, Punctual),
// and the next leader waits until one that may still be under way must be over, unless
// the lease was handed over.
package lead
