// SPDX-License-Identifier: Apache-2.0

package decide

// Action is one CSI call or one API request.
type Action uint8

const (
	// StampPV puts the attacher's finalizer on the PersistentVolume.
	StampPV Action = iota + 1
	// ReadSecret reads the next call's Secret.
	ReadSecret
	// Stamp writes the finalizer and the node's ID on the VolumeAttachment at once.
	Stamp
	// Publish calls ControllerPublishVolume at Step.NodeID.
	Publish
	// MarkAttached writes status.attached, the publish context and no error.
	MarkAttached
	// Look calls ControllerGetVolume: is the volume at Step.NodeID?
	Look
	// Unpublish calls ControllerUnpublishVolume at Step.NodeID.
	Unpublish
	// Release takes the finalizer off the VolumeAttachment.
	Release
	// MarkDetached clears the status of an object that foreign finalizers keep.
	MarkDetached
	// ReportAttach and ReportDetach write Step.Reason to the status.
	ReportAttach
	ReportDetach
)

func (a Action) String() string {
	return [...]string{"none", "stamp-pv", "read-secret", "stamp", "publish", "mark-attached", "look",
		"unpublish", "release", "mark-detached", "report-attach", "report-detach"}[a]
}

// Call says whether the action is a driver call and counts against the Limit.
func (a Action) Call() bool { return a == Publish || a == Unpublish || a == Look }

// Records says whether the action writes down a call's result.
func (a Action) Records() bool { return a == MarkAttached || a == Release || a == MarkDetached }

// Step is one action for one VolumeAttachment.
type Step struct {
	Do        Action
	Volume    VolumeID
	Name, UID string
	// NodeID is the call's node.
	NodeID string
	// Context is the publish context for MarkAttached.
	Context map[string]string
	// Reason is for ReportAttach and ReportDetach.
	Reason Reason
	// Detach: the step leads to a detach. Its failures count apart.
	Detach bool
}

// Result is a step's end.
type Result struct {
	// Failed is zero after a success.
	Failed Reason
	// Moved, with Failed: the object had changed, and has been read again.
	Moved bool
	// Context is a Publish's result.
	Context map[string]string
	// There is a Look's result.
	There bool
}
