// SPDX-License-Identifier: Apache-2.0

// Package operation makes and ends the tickets by which drivers have a volume attached, or detached,
// while they take a snapshot of it, clone it or expand it (AttachPolicy: attachFor, detachFor).
//
// Reads: the ledger; claims, as package watch keeps them; the contents of snapshots, where
// external-snapshotter's definitions are served and a policy asks for them. Decides:
// internal/operation. Writes: VolumeTickets, by create and by delete with the UID that was
// decided on; events on claims and snapshots.
package operation
