// SPDX-License-Identifier: Apache-2.0

package diskapi

// The service's notes about pods' writes, always in phase Noted. Most writes are not noted: a writer's
// first one is, the first one after something about its volume has changed, and, before such a change,
// how far it had come.
const (
	// WriteBegan: the first write of a writer was carried out.
	WriteBegan Call = "WriteBegan"
	// Wrote: a writer has come so far.
	Wrote Call = "Wrote"
	// WriteRefused: a write was refused. Its writer stops.
	WriteRefused Call = "WriteRefused"
)

// WriteMark is how far a writer has come. Its writes have numbers, each one higher than that
// of the last one which it found on the disk or made itself. The pod is told of each that it
// is done; until it is flushed it is only in the memory of the machine.
type WriteMark struct {
	// Session names the writer: the sequence number of its first write in the log. 0 is a
	// writer that has not written yet.
	Session uint64 `json:"session,omitempty"`
	// Written is the number of the last write, Flushed that of the last one on the disk.
	// Invariant: Flushed ≤ Written.
	Written uint64 `json:"written,omitempty"`
	Flushed uint64 `json:"flushed,omitempty"`
}

// Write is a write of a node to a volume.
type Write struct {
	Volume string `json:"volume"`
	// AccessMode is that of the NodePublish.
	AccessMode string `json:"accessMode,omitempty"`
	WriteMark
}

// Writes are writes of a node, each to another volume.
type Writes struct {
	Node string `json:"node"`
	// Boot is the number of the machine's boot: Node.Boot.
	Boot    int     `json:"boot"`
	Volumes []Write `json:"volumes"`
}

// WriteAnswer is the service's answer to a Write: the mark from which the writer goes on. A mark
// without a session says that there is no such writer, or not any more: it begins anew.
type WriteAnswer struct {
	Volume string `json:"volume"`
	WriteMark
	// Refused says why the write was not carried out, as an I/O error would: the writer
	// stops until the volume is unpublished.
	Refused string `json:"refused,omitempty"`
}
