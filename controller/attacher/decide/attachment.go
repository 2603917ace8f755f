// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"time"

	"google.golang.org/grpc/codes"
)

// VolumeID is a volume handle of this driver, as in PersistentVolumes. Empty: unknown.
type VolumeID string

// Reason is why something is not done, for the VolumeAttachment; zero: none.
type Reason struct {
	Message string
	// Code is the driver's gRPC code; codes.OK stands for none.
	Code codes.Code
}

func (r Reason) IsZero() bool { return r == Reason{} }

// Attachment is a VolumeAttachment of this driver, with facts from related objects.
type Attachment struct {
	Name, UID string
	// Node is the node's name, not the driver's ID.
	Node    string
	Created time.Time
	// Mark changes when another component changes labels, annotations or finalizers: look again.
	Mark string
	// Transitions is the fencing token; 0: none.
	Transitions int64
	// Beside is a live migration's source node, where the volume may stay published.
	Beside string

	Deleting bool
	// Stamped: the attacher's finalizer is on. Kept: a foreign finalizer is on.
	Stamped, Kept bool
	// Attached, Metadata and the errors are the object's status.
	Attached                 bool
	Metadata                 map[string]string
	AttachError, DetachError Reason
	// NodeID is the driver's ID of the publish's node, as stamped on the object; or empty.
	NodeID string
	// Wanted: the volume of an object under deletion is wanted again at this node.
	Wanted bool

	// Volume is empty if the source names no known volume.
	Volume VolumeID
	// Exclusive: the access modes allow one node at a time.
	Exclusive bool
	// TargetID is the node's ID in its CSINode; without it, NoTarget says why.
	TargetID string
	NoTarget Reason
	// NeedsSecret: calls need a Secret.
	NeedsSecret bool
	// PVStamped: the finalizer is on the PersistentVolume, or there is none.
	PVStamped bool
	// NoPublish and NoUnpublish say why the call is impossible.
	NoPublish, NoUnpublish Reason
}

// Evidence is the knowledge about a volume at a node.
type Evidence uint8

const (
	// Unknown: a call may have published the volume there. Counts as held.
	Unknown Evidence = iota
	// Absent: no publish was called, or an unpublish has succeeded since.
	Absent
	// Published: a publish succeeded, and no call was made since.
	Published
)

// Rejected says whether a code is a definite answer without effect. After other codes an operation may go
// on (CSI spec, "Error Scheme"; the final codes of external-attacher and the kubelet, less Unknown).
func Rejected(c codes.Code) bool {
	switch c {
	case codes.OK, codes.Canceled, codes.Unknown, codes.DeadlineExceeded,
		codes.ResourceExhausted, codes.Aborted, codes.Unavailable, codes.DataLoss:
		return false
	}
	return true
}
