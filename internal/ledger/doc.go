// SPDX-License-Identifier: Apache-2.0

// Package ledger holds the facts for Moorage's decisions: volumes, their attachments, nodes' reports, users
// and their requests, and Moorage's own records. It draws no conclusions: internal/rules does. Its callers
// are internal/watch, which feeds it, and all packages that decide.
//
// Facts come in as events (Ledger.Apply), in any order across objects; an event older than the known state
// is ignored. Facts go out as a Snapshot: immutable, made in constant time, safe for parallel use.
//
// The package imports only the standard library, starts no goroutines, reads no clock and has no
// randomness: the same events give the same ledger.
//
// The central record is the VolumeOnNode, a volume at a node. It exists while any fact binds the two: a
// VolumeAttachment, an entry in the node's volumesAttached or volumesInUse, a bound pod, a ticket.
//
//	Invariant: NodeDriver.Used = |{v : v.Driver = d ∧ VolumeOnNode(v, n) exists}|
//
// so that a slot is counted once however many facts claim it, from the first of them to the last.
package ledger
