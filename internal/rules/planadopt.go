// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// In Cooperative mode most volumes are none of Moorage's business: those that no
// opted-in pod and no ticket uses. Nothing is written for one of them, neither a
// VolumeHold nor a VolumeAttachment; what others have attached counts for slots and
// exclusivity all the same, since the ledger knows of it. The first that opts in
// finds the volume where it is (planner.found).

// adopted says whether a volume is Moorage's business: always in Standalone mode,
// else while an opted-in pod or a ticket uses it, and from then on until it has come
// to rest, or somebody else uses it.
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

// leave plans the end of what was written for a volume while it was adopted: the hold
// names no node any more, and goes with the volume. What it says of volumes that were taken
// by force stays, as long as it may be true; and so does that a Node which is gone named the volume.
func (p *planner) leave() {
	was := hold(p.volume)
	switch {
	case p.forgotten():
		p.deleteHold(was)
	case !p.exclusive:
		note := p.emptyNote(was)
		note.Fences = p.fences(was, note)
		p.writeNote(was, note)
	case was.Node != "" || len(was.Fences) > 0:
		p.hold = p.emptyNote(was)
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
