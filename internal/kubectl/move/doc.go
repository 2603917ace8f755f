// SPDX-License-Identifier: Apache-2.0

// Package move is kubectl moorage attach and detach, and ticket make, renew and end:
// volumes are brought to a node, or let go, by hand.
//
// Reads: everything the ledger is made of. Decides: nothing; the arbiter says
// whether a ticket would be granted, and the controller grants it or not.
// Writes: VolumeTickets: creates them, renews their time, and deletes them again.
// It takes nothing away from anybody: what is in use is refused, with by whom.
package move
