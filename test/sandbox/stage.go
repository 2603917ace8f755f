// SPDX-License-Identifier: Apache-2.0

package sandbox

import "slices"

type Stage string

const (
	Created           Stage = "created"            // the pod exists
	Stamped           Stage = "stamped"            // it carries a volume status
	Bound             Stage = "bound"              // it has a node
	AttachmentCreated Stage = "attachment created" // the VolumeAttachment exists
	PublishCalled     Stage = "publish called"     // ControllerPublish reached the disk service
	Published         Stage = "published"          // ControllerPublish was answered with success
	Attached          Stage = "attached"           // the VolumeAttachment says attached
	Reported          Stage = "reported"           // the volume is in node.status.volumesAttached
	InUse             Stage = "in use"             // the volume is in node.status.volumesInUse
	StageCalled       Stage = "stage called"       // NodeStage reached the node
	Staged            Stage = "staged"             // NodeStage was answered with success
	Mounted           Stage = "mounted"            // NodePublish was answered with success
	Running           Stage = "running"            // the pod's phase is Running

	Deleted             Stage = "deleted"              // the pod has a deletion timestamp
	Gone                Stage = "gone"                 // the pod object is gone
	Unmounted           Stage = "unmounted"            // NodeUnpublish was answered with success
	Unstaged            Stage = "unstaged"             // NodeUnstage was answered with success
	NotInUse            Stage = "not in use"           // the volume left volumesInUse
	Unreported          Stage = "unreported"           // the volume left volumesAttached
	AttachmentReleasing Stage = "attachment releasing" // the VolumeAttachment has a deletion timestamp
	UnpublishCalled     Stage = "unpublish called"     // ControllerUnpublish reached the disk service
	Unpublished         Stage = "unpublished"          // ControllerUnpublish was answered with success
	Detached            Stage = "detached"             // the VolumeAttachment is gone
)

func Stages() []Stage { return slices.Concat(upStages(), downStages()) }

func (s Stage) OfMoorage() bool { return s == Stamped }

func upStages() []Stage {
	return []Stage{
		Created, Stamped, Bound, AttachmentCreated, PublishCalled, Published,
		Attached, Reported, InUse, StageCalled, Staged, Mounted, Running,
	}
}

func downStages() []Stage {
	return []Stage{
		Deleted, Unmounted, Unstaged, Gone, NotInUse, Unreported, AttachmentReleasing,
		UnpublishCalled, Unpublished, Detached,
	}
}
