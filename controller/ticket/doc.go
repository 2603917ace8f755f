// SPDX-License-Identifier: Apache-2.0

// Package ticket ends tickets, and says on granted tickets whether their volumes are in place. The
// scheduler grants them: see internal/tickets. It decides by rules.EndOf and Satisfied, and reads a Node
// again before a ticket ends because of it.
package ticket
