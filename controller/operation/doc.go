// SPDX-License-Identifier: Apache-2.0

// Package operation makes and ends the tickets that have a volume attached or detached for a driver while
// it takes a snapshot of it, clones it or expands it (AttachPolicy: attachFor, detachFor).
//
// Reads: the ledger; claims, as package watch keeps them; the contents of snapshots, where
// external-snapshotter's definitions are served and a policy asks for them. Decides: internal/operation.
// Writes: VolumeTickets, by create and by delete with the decided UID; events on claims and snapshots.
package operation
