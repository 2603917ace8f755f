// SPDX-License-Identifier: Apache-2.0

package diskapi

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Operation is what a storage system does with a volume besides attaching it. A driver may
// want the volume attached for it, or attached nowhere.
type Operation string

// The operations.
const (
	// SnapshotVolume makes a snapshot of a volume, alone or with others.
	SnapshotVolume Operation = "snapshot"
	// CloneVolume makes a new volume that is a copy of another one.
	CloneVolume Operation = "clone"
	// ExpandVolume makes a volume larger.
	ExpandVolume Operation = "expansion"
)

// Operations lists them all.
func Operations() []Operation { return []Operation{SnapshotVolume, CloneVolume, ExpandVolume} }

// ParseOperations reads a list such as "snapshot,clone"; empty is none.
func ParseOperations(text string) ([]Operation, error) {
	if text == "" {
		return nil, nil
	}
	var list []Operation
	for name := range strings.SplitSeq(text, ",") {
		o := Operation(strings.TrimSpace(name))
		if !slices.Contains(Operations(), o) {
			return nil, fmt.Errorf("%q is no operation: use some of %v, with commas between them", name, Operations())
		}
		list = append(list, o)
	}
	return list, nil
}

// The CSI calls of operations.
const (
	CreateSnapshot      Call = "CreateSnapshot"
	DeleteSnapshot      Call = "DeleteSnapshot"
	ListSnapshots       Call = "ListSnapshots"
	CreateGroupSnapshot Call = "CreateVolumeGroupSnapshot"
	DeleteGroupSnapshot Call = "DeleteVolumeGroupSnapshot"
	GetGroupSnapshot    Call = "GetVolumeGroupSnapshot"
	ControllerExpand    Call = "ControllerExpandVolume"
	NodeExpand          Call = "NodeExpandVolume"
)

// The service's notes about operations, always in phase Noted. The entry's ID is the ID of the call
// that asked for the operation.
const (
	// WorkBegan: the storage has begun an operation on a volume. A copy has all writes flushed until
	// then; the entry's Write has the number.
	WorkBegan Call = "WorkBegan"
	// WorkTorn: it came to nothing, since the volume was detached in the middle.
	WorkTorn Call = "WorkTorn"
	// SnapshotReady: the copy behind a snapshot that was answered before is complete.
	SnapshotReady Call = "SnapshotReady"
)

// Part is a snapshot of a group.
type Part struct {
	// Volume is the volume that it is made of.
	Volume string `json:"volume"`
	// Handle is the snapshot's.
	Handle string `json:"handle,omitempty"`
}

// Operated is what the calls of operations carry besides volume and name.
type Operated struct {
	// Operation is for WorkBegan and WorkTorn.
	Operation Operation `json:"operation,omitempty"`
	// WhileAttached says that it needs its volume attached until it is over.
	WhileAttached bool `json:"whileAttached,omitempty"`
	// Source is the handle of the volume that a disk is a copy of.
	Source string `json:"source,omitempty"`
	// Snapshot is the handle of a snapshot: to make or delete, or a disk's source.
	Snapshot string `json:"snapshot,omitempty"`
	// Group is the handle of a group of snapshots, and Parts are its members.
	Group string `json:"group,omitempty"`
	Parts []Part `json:"parts,omitempty"`
	// Unready says that a snapshot can't be used yet.
	Unready bool `json:"unready,omitempty"`
}

// Snapshot is a snapshot as the storage has it. It needs neither its volume nor its group.
type Snapshot struct {
	Handle string `json:"handle"`
	Name   string `json:"name"`
	// Volume is the volume that it was made of; that one may be gone.
	Volume    string `json:"volume"`
	SizeBytes int64  `json:"sizeBytes"`
	// Group is the handle of its group; empty if it was made alone.
	Group   string    `json:"group,omitempty"`
	Created time.Time `json:"created"`
	Ready   bool      `json:"ready"`
	// Flushed is the number of the last write that it has: see WriteMark.
	Flushed uint64 `json:"flushed,omitempty"`
}
