// SPDX-License-Identifier: Apache-2.0

// Package policy says on each AttachPolicy whether the controller can do as it
// says. Schedulers read it there: a pod that a refused policy applies to is told
// why at once, and asks for no grant that it can't get.
//
// Reads: the ledger. Decides: arbiter.Accepts. Writes: condition Refused of the
// AttachPolicy, on the version that was decided on; and an event. A policy with
// which nothing is wrong is not written.
package policy
