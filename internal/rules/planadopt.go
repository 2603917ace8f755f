// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// In Cooperative mode Moorage ignores most volumes: those without an opted-in pod or a ticket get neither a
// VolumeHold nor a VolumeAttachment. The ledger still counts their attachments for slots and exclusivity.
// The first user that opts in finds the volume in its place (planner.found).

// adopted says whether Moorage manages a volume: always in Standalone mode, else while an opted-in pod or a
// ticket uses it, and after that until it is at rest or another user uses it.
func (p *planner) adopted() bool {
	if !p.Cooperative {
		return true
	}
	others := false
	for i := range p.volume.NodeVolumes {
		place := &p.volume.NodeVolumes[i]
		if place.Sent || place.Left || slices.ContainsFunc(place.Attachments(), func(a *ledger.Attachment) bool { return a.Ours }) {
			return true
		}
		for _, u := range place.Users {
			if !p.outsider(u) {
				return true
			}
			others = true
		}
	}
	return !others && hold(p.volume).Node != ""
}

// outsider says whether a user of a NodeVolume is a pod that has not opted in.
func (p *planner) outsider(u ledger.User) bool {
	pod := p.snapshot.Pod(u.Pod)
	return pod != nil && pod.OptedOut
}

// leave plans the end of Moorage's records of a formerly adopted volume: the hold names no node, and is
// deleted with the volume. Its fences of volumes taken by force stay while they may be true. A note that a
// deleted Node named the volume stays as well.
func (p *planner) leave() {
	was := p.volume.Written()
	switch {
	case p.forgotten():
		p.deleteHold()
	case !p.exclusive:
		is := p.emptyHold(was)
		is.Fences = p.fences(was, is)
		p.writeShared(was, is)
	case was.Node != "" || len(was.Fences) > 0:
		p.hold = p.emptyHold(was)
		p.hold.State, p.hold.Fences = ledger.HoldFree, p.fences(was, p.hold)
		if !sameHold(was, p.hold) {
			p.writeHold()
		}
	}
	for i := range p.volume.NodeVolumes {
		if place := &p.volume.NodeVolumes[i]; place.ReportSent {
			p.detachUnreported(p.snapshot.Node(place.Node), place, p.own(place))
		}
	}
}
