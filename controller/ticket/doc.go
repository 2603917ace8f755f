// SPDX-License-Identifier: Apache-2.0

// Package ticket grants tickets and ends them. The controller is the only
// place where a ticket is granted.
//
// Reads: snapshots; one pod with a consistent read before its reservation
// ends as gone, and a claim or a node before a ticket is refused because there is
// none.
// Decides: arbiter.Grant, Keeps, Covered and Satisfied. Writes:
// the holds of a grant, the ticket's status, and its end.
//
// The tickets of one node are decided together, in the order of their rank, and
// none while a write of that node's is under way, so that no two of them count
// the same free slot; a grant's holds are written before it, so that no two of
// them, whoever leads, have the same exclusive volume.
package ticket
