// SPDX-License-Identifier: Apache-2.0

// Package lead has one process of several do the work, by a Lease.
//
// Reads: the Lease. Decides: the leader, with client-go's election. Writes: the Lease.
//
// A lease does not stop a paused process, and the monotonic clock of a suspended machine may stand
// still: a lease is over by either that clock or the wall clock. A leader's writes have deadlines
// inside its lease (Term.Until, Punctual), and the next leader waits until a write under way must be
// over, unless the lease was handed over.
package lead
