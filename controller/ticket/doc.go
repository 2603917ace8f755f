// SPDX-License-Identifier: Apache-2.0

// Package ticket ends tickets, and says of those that are granted whether their volumes are where they are wanted.
// The scheduler grants them: see internal/tickets.
//
// Reads: snapshots; through protocol, a Node before a ticket ends because of it.
// Decides: rules.EndOf and Satisfied. Writes, through protocol: the ticket's condition Satisfied, how long it has
// lived, and its end.
package ticket
