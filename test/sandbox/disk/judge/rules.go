// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"maps"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func (j *Judge) arrived(e diskapi.Entry) {
	switch e.Call {
	case diskapi.ControllerPublish:
		j.checkPublish(e)
		p := j.place(e.Volume, e.Node)
		p.attachment.open++
		p.mode = e.AccessMode
	case diskapi.ControllerUnpublish:
		j.checkUnpublish(e)
		p := j.place(e.Volume, e.Node)
		p.unpublishing++
		p.attachment.giveBack()
	case diskapi.DeleteVolume:
		j.checkDelete(e)
	case diskapi.UnfenceNetwork:
		j.checkLetIn(e)
	case diskapi.NodeStage, diskapi.NodeUnstage, diskapi.NodePublish, diskapi.NodeUnpublish:
		j.arrivedAtNode(e)
	}
}

func (j *Judge) arrivedAtNode(e diskapi.Entry) {
	if j.node(e.Node).fenced {
		j.report(e, diskapi.FencedNode, "node %s was declared dead and yet calls %s", e.Node, e.Call)
	}
	p := j.place(e.Volume, e.Node)
	refused := j.isCut(e.Node)
	switch e.Call {
	case diskapi.NodeStage:
		if !refused {
			j.checkStage(e, p)
			j.checkStagedElsewhere(e)
		}
		p.staging.open++
	case diskapi.NodeUnstage:
		if target := p.published(); target != "" {
			j.report(e, diskapi.UnstageWhilePublished, "volume %s is unstaged at node %s while published at %s", e.Volume, e.Node, target)
		}
		p.staging.giveBack()
	case diskapi.NodePublish:
		if !refused {
			j.checkNodePublish(e, p)
		}
		p.target(e.Path).open++
	}
}

func (j *Judge) checkPublish(e diskapi.Entry) {
	for _, other := range j.others(e.Volume, e.Node) {
		if diskapi.Exclusive(e.AccessMode) || diskapi.Exclusive(j.places[e.Volume][other].mode) {
			j.report(e, diskapi.TwoNodes, "volume %s is published to node %s while it may be at node %s", e.Volume, e.Node, other)
		}
	}
	n := j.node(e.Node)
	if _, here := n.volumes[e.Volume]; !here && n.slots > 0 && len(n.volumes) >= n.slots {
		j.report(e, diskapi.OverLimit, "volume %s is published to node %s, whose %d slots are taken", e.Volume, e.Node, n.slots)
	}
}

func (j *Judge) checkUnpublish(e diskapi.Entry) {
	p := j.place(e.Volume, e.Node)
	if j.isCut(e.Node) {
		return // mounts there read and write nothing
	}
	if target := p.published(); target != "" {
		j.report(e, diskapi.UnpublishWhileStaged, "volume %s is unpublished from node %s while a pod there has it at %s", e.Volume, e.Node, target)
	} else if p.staging.may() {
		j.report(e, diskapi.UnpublishWhileStaged, "volume %s is unpublished from node %s while staged there", e.Volume, e.Node)
	}
}

func (j *Judge) checkDelete(e diskapi.Entry) {
	for _, id := range j.others(e.Volume, "") {
		j.report(e, diskapi.DeleteWhileAttached, "volume %s is deleted while it may be at node %s", e.Volume, id)
	}
}

func (j *Judge) checkStage(e diskapi.Entry, p *place) {
	switch {
	case p.unpublishing > 0:
		j.report(e, diskapi.UnpublishWhileStaged, "volume %s is staged at node %s while it is being unpublished there", e.Volume, e.Node)
	case p.attachment.sure:
		j.checkContext(e, p)
	case !p.at() && len(j.others(e.Volume, e.Node)) > 0:
		j.report(e, diskapi.WrongNode, "volume %s is staged at node %s but is at node %s", e.Volume, e.Node, j.others(e.Volume, e.Node)[0])
	default:
		j.report(e, diskapi.StageBeforePublish, "volume %s is staged at node %s, to which no publish has succeeded", e.Volume, e.Node)
	}
}

// checkStagedElsewhere looks for nodes with an early detach. A node that has the volume attached was
// reported before, or is the source of a live migration.
func (j *Judge) checkStagedElsewhere(e diskapi.Entry) {
	if !diskapi.Exclusive(e.AccessMode) {
		return
	}
	for _, other := range j.Staged(e.Volume) {
		if other != e.Node && !j.places[e.Volume][other].at() && !j.isCut(other) {
			j.report(e, diskapi.StagedAtTwo, "volume %s is staged at node %s while node %s, from which it was detached, has it staged, too", e.Volume, e.Node, other)
		}
	}
}

func (j *Judge) checkNodePublish(e diskapi.Entry, p *place) {
	if !p.staging.sure {
		j.report(e, diskapi.PublishBeforeStage, "volume %s is published to a pod at node %s, where no stage has succeeded", e.Volume, e.Node)
	} else {
		j.checkContext(e, p)
	}
	if e.AccessMode != "SINGLE_NODE_SINGLE_WRITER" {
		return
	}
	for path, t := range p.targets {
		if path != e.Path && t.may() {
			j.report(e, diskapi.TwoPods, "volume %s is published to a second pod at node %s, %s has it", e.Volume, e.Node, p.published())
			return
		}
	}
}

func (j *Judge) checkContext(e diskapi.Entry, p *place) {
	if !maps.Equal(e.Context, p.context) {
		j.report(e, diskapi.PublishContext, "%s of volume %s at node %s has publish context %v, the last publish answered %v",
			e.Call, e.Volume, e.Node, e.Context, p.context)
	}
}
