// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"time"

	"google.golang.org/grpc/codes"
)

// VolumeID is a driver's volume handle, as PersistentVolumes spell it. The driver is this process's
// own. Empty: unknown.
type VolumeID string

// Reason is the reason why something is not done, to be shown on the VolumeAttachment. The zero
// Reason is none.
type Reason struct {
	Message string
	// Code is the gRPC code, if a driver gave one; codes.OK stands for none.
	Code codes.Code
}

func (r Reason) IsZero() bool { return r == Reason{} }

// Attachment is a VolumeAttachment of this process's driver, with the facts from the objects that
// it refers to.
type Attachment struct {
	Name, UID string
	// Node is the name of the node, not the driver's ID for it.
	Node    string
	Created time.Time
	// Mark changes whenever another component changes the object's labels, annotations or finalizers: a
	// request to look again.
	Mark string
	// Transitions is the fencing token; 0 when the object carries none.
	Transitions int64
	// Beside is a node where the volume may stay published as well: the source of a live migration.
	Beside string

	Deleting bool
	// Stamped: the attacher's finalizer is on. Kept: a foreign finalizer is on as well.
	Stamped, Kept bool
	// Attached, Metadata and the errors are the object's status.
	Attached                 bool
	Metadata                 map[string]string
	AttachError, DetachError Reason
	// NodeID is the driver's ID of the node as the object was stamped with it: the volume was
	// published there. Empty if it was not.
	NodeID string
	// Wanted, on an object that is being deleted: the volume is wanted again at
	// this very node.
	Wanted bool

	// Volume is empty when the source names none that can be found.
	Volume VolumeID
	// Exclusive: the access modes allow one node at a time.
	Exclusive bool
	// TargetID is the driver's ID of the node in its CSINode; without one,
	// NoTarget says why.
	TargetID string
	NoTarget Reason
	// NeedsSecret: calls need a Secret to be read first.
	NeedsSecret bool
	// PVStamped: the attacher's finalizer is on the PersistentVolume, or the
	// volume has none.
	PVStamped bool
	// NoPublish and NoUnpublish say why the call can't be put together.
	NoPublish, NoUnpublish Reason
}

// Evidence is the knowledge about a volume at a node.
type Evidence uint8

const (
	// Unknown: a call may have published the volume there. Counts as held.
	Unknown Evidence = iota
	// Absent: no publish was ever called, or an unpublish has succeeded since.
	Absent
	// Published: a publish succeeded, and no call was made since.
	Published
)

// Rejected says whether a code is a definite answer of the driver: the call is over and had no
// effect. After other codes an operation may go on (CSI spec, "Error Scheme"; the final codes of
// external-attacher and the kubelet, less Unknown).
func Rejected(c codes.Code) bool {
	switch c {
	case codes.OK, codes.Canceled, codes.Unknown, codes.DeadlineExceeded,
		codes.ResourceExhausted, codes.Aborted, codes.Unavailable, codes.DataLoss:
		return false
	}
	return true
}
