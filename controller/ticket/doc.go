// SPDX-License-Identifier: Apache-2.0

// Package ticket grants tickets and ends them. The controller is the only
// place where a ticket is granted.
//
// Reads: snapshots; through flow, a claim or a node before a ticket loses its grant
// because there is none.
// Decides: flow.Round; arbiter.Keeps and Satisfied. Writes, through flow:
// the holds of a grant, the ticket's status, and its end.
//
// A term begins with every pending ticket in doubt, and takes each over by writing
// its epoch into it. Attachments don't wait for that. A ticket that can't be written
// is left out, tried again and again, and not granted meanwhile.
//
// The tickets of one node are decided together, in the order of their rank, and
// none while a write of that node's is under way, so that no two of them count
// the same free slot; a grant's holds are written before it, so that no two of
// them, whoever leads, have the same exclusive volume.
package ticket
