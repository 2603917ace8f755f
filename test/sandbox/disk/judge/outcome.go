// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"net/netip"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// The caller may be told otherwise.
func (j *Judge) applied(e diskapi.Entry) {
	switch e.Call {
	case diskapi.ControllerPublish:
		j.place(e.Volume, e.Node).attachment.held = true
	case diskapi.NodeGetInfo:
		if a, err := netip.ParseAddr(e.Address); err == nil {
			j.node(e.Node).address = a
		}
	case diskapi.FenceNetwork:
		j.cut = append(j.cut, diskapi.Prefixes(e.CIDRs)...)
	case diskapi.UnfenceNetwork:
		j.cut = without(j.cut, e.CIDRs)
	case diskapi.NodeStage:
		if !j.stale(e) {
			j.place(e.Volume, e.Node).staging.held = true
		}
	case diskapi.NodePublish:
		if !j.stale(e) {
			j.place(e.Volume, e.Node).target(e.Path).held = true
		}
	}
}

// stale entries end calls that were open at a node when it was declared dead.
func (j *Judge) stale(e diskapi.Entry) bool { return e.ID < j.node(e.Node).fencedAt }

func (j *Judge) returned(e diskapi.Entry) {
	switch e.Call {
	case diskapi.NodeGetInfo:
		if e.Done() {
			j.node(e.Node).slots = e.Slots
		}
	case diskapi.ControllerPublish:
		p := j.place(e.Volume, e.Node)
		p.attachment.took(e.Done(), diskapi.Ambiguous(e.Code))
		if e.Done() {
			p.context = e.Context
		}
	case diskapi.ControllerUnpublish:
		p := j.place(e.Volume, e.Node)
		p.unpublishing--
		if e.Done() {
			p.attachment.gone()
		}
	case diskapi.NodeStage, diskapi.NodeUnstage, diskapi.NodePublish, diskapi.NodeUnpublish:
		if !j.stale(e) {
			j.returnedAtNode(e)
		}
	}
}

func (j *Judge) returnedAtNode(e diskapi.Entry) {
	p := j.place(e.Volume, e.Node)
	switch e.Call {
	case diskapi.NodeStage:
		p.staging.took(e.Done(), diskapi.Interrupted(e.Code))
	case diskapi.NodePublish:
		p.target(e.Path).took(e.Done(), diskapi.Interrupted(e.Code))
	case diskapi.NodeUnstage:
		if e.Done() {
			p.staging.gone()
		}
	case diskapi.NodeUnpublish:
		if t := p.target(e.Path); e.Done() {
			t.gone()
			if !t.may() {
				delete(p.targets, e.Path)
			}
		}
	}
}
