// SPDX-License-Identifier: Apache-2.0

package diskapi

// Notes about pods' writes, always in phase Noted: a writer's first write, its progress before a change of
// its volume, and its first write after that.
const (
	WriteBegan   Call = "WriteBegan"
	Wrote        Call = "Wrote"
	WriteRefused Call = "WriteRefused"
)

// WriteMark is a writer's progress. Each write has a higher number than the last write that the writer
// found or made. The pod is told that a write is done; until a flush it is only in the machine's memory.
type WriteMark struct {
	// Session is the sequence number of the writer's first write; 0: it has not written yet.
	Session uint64 `json:"session,omitempty"`
	// Written is the number of the last write, Flushed that of the last write on the disk. Invariant:
	// Flushed ≤ Written.
	Written uint64 `json:"written,omitempty"`
	Flushed uint64 `json:"flushed,omitempty"`
}

type Write struct {
	Volume     string `json:"volume"`
	AccessMode string `json:"accessMode,omitempty"`
	WriteMark
}

type Writes struct {
	Node    string  `json:"node"`
	Boot    int     `json:"boot"`
	Volumes []Write `json:"volumes"`
}

// WriteAnswer has the mark from which the writer goes on. Without a session there is no such writer (any
// more), and it begins anew.
type WriteAnswer struct {
	Volume string `json:"volume"`
	WriteMark
	// Refused is the reason of a refusal, like an I/O error: the writer stops until the volume is
	// unpublished.
	Refused string `json:"refused,omitempty"`
}
