// SPDX-License-Identifier: Apache-2.0

// Package operation makes and ends the tickets that attach or detach a volume while a driver takes its
// snapshot, clones it or expands it (AttachPolicy: attachFor, detachFor). internal/operation decides. It
// deletes VolumeTickets by UID, and writes events on claims and snapshots.
package operation
