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

const (
	SnapshotVolume Operation = "snapshot"
	CloneVolume    Operation = "clone"
	ExpandVolume   Operation = "expansion"
)

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

// The service's notes about operations. The ID is that of the operation's call.
const (
	// WorkBegan: an operation has begun on a volume. A copy has all writes flushed until then, by the
	// number in Write.
	WorkBegan Call = "WorkBegan"
	WorkTorn  Call = "WorkTorn"
	// SnapshotReady: the copy behind a snapshot that was answered before is complete.
	SnapshotReady Call = "SnapshotReady"
)

type Part struct {
	Volume string `json:"volume"`
	Handle string `json:"handle,omitempty"`
}

type Operated struct {
	Operation     Operation `json:"operation,omitempty"`
	WhileAttached bool      `json:"whileAttached,omitempty"`
	Source        string    `json:"source,omitempty"`
	Snapshot      string    `json:"snapshot,omitempty"`
	Group         string    `json:"group,omitempty"`
	Parts         []Part    `json:"parts,omitempty"`
	Unready       bool      `json:"unready,omitempty"`
}

// Snapshot needs neither its volume nor its group.
type Snapshot struct {
	Handle    string    `json:"handle"`
	Name      string    `json:"name"`
	Volume    string    `json:"volume"`
	SizeBytes int64     `json:"sizeBytes"`
	Group     string    `json:"group,omitempty"`
	Created   time.Time `json:"created"`
	Ready     bool      `json:"ready"`
	// Flushed is the number of the snapshot's last write: see WriteMark.
	Flushed uint64 `json:"flushed,omitempty"`
}
