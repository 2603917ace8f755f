// SPDX-License-Identifier: Apache-2.0

// Package ticket ends tickets, and says for granted tickets whether their volumes are in place. The
// scheduler grants them: see internal/tickets.
//
// Reads: snapshots; through protocol, a Node before a ticket ends because of it. Decides: rules.EndOf and
// Satisfied. Writes, through protocol: the ticket's condition Satisfied, its age, and its end.
package ticket
