// SPDX-License-Identifier: Apache-2.0

package decide

// Action is one CSI call, or one request to the API server.
type Action uint8

const (
	// StampPV puts the attacher's finalizer on the PersistentVolume.
	StampPV Action = iota + 1
	// ReadSecret reads the Secret that the next call needs.
	ReadSecret
	// Stamp puts the attacher's finalizer and the node's ID on the
	// VolumeAttachment, in one write.
	Stamp
	// Publish calls ControllerPublishVolume at Step.NodeID.
	Publish
	// MarkAttached writes status.attached, the publish context and no error.
	MarkAttached
	// Look calls ControllerGetVolume, to see whether the volume is at Step.NodeID.
	Look
	// Unpublish calls ControllerUnpublishVolume at Step.NodeID.
	Unpublish
	// Release takes the attacher's finalizer off the VolumeAttachment.
	Release
	// MarkDetached clears the status of an object that other finalizers keep.
	MarkDetached
	// ReportAttach and ReportDetach write Step.Reason to the status.
	ReportAttach
	ReportDetach
)

func (a Action) String() string {
	return [...]string{"none", "stamp-pv", "read-secret", "stamp", "publish", "mark-attached", "look",
		"unpublish", "release", "mark-detached", "report-attach", "report-detach"}[a]
}

// Call says whether the action is a call to the driver, which counts against the Limit.
func (a Action) Call() bool { return a == Publish || a == Unpublish || a == Look }

// Records says whether the action writes down the result of a call.
func (a Action) Records() bool { return a == MarkAttached || a == Release || a == MarkDetached }

// Step is one action for one VolumeAttachment.
type Step struct {
	Do        Action
	Volume    VolumeID
	Name, UID string
	// NodeID is the node of the call.
	NodeID string
	// Context is the publish context that MarkAttached writes.
	Context map[string]string
	// Reason is for ReportAttach and ReportDetach.
	Reason Reason
	// Detach: the step is on the way to a detach. Its failures count apart from an attach's.
	Detach bool
}

// Result is how a step ended.
type Result struct {
	// Failed is zero after a success.
	Failed Reason
	// Moved, with Failed: a write found the object changed, and it has been
	// read again.
	Moved bool
	// Context is the result of a Publish.
	Context map[string]string
	// There is the result of a Look.
	There bool
}
