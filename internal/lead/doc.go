// SPDX-License-Identifier: Apache-2.0

// Package lead elects a process by a Lease, with client-go's election.
//
// A lease does not stop a paused process: it is over by the monotonic or the wall clock. Writes have
// deadlines inside the lease (Term.Until, Punctual). Without a hand-over, the next leader waits for a last
// write.
package lead
