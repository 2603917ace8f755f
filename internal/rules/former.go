// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// former is the rule of an earlier machine of a node's name that may have a volume mounted, while the
// present machine is Ready. The policy's times run for the earlier machine from the moment when the Node
// ceased to name it: its kubelet, if alive, would write to that Node. These times prove nothing, also if
// the policy says that an unpublish does: a driver with one name for both machines can't tell them apart
// (docs/decisions/0042).
//
// If the driver has different names for the machines, the volume can't be detached from the earlier one
// (NodeReplaced), and no time runs.
//
// The present machine is never forced: its kubelet has reported and does not list the volume, and the node
// has no user of it. Or its Node does not name the volume as attached: then nothing is mounted there, also
// if a pod waits for it (bars).
func former(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume, now time.Time) forcing {
	n := s.Node(p.Node)
	if !ready(n) || !n.Reporting || n.MachineAt.IsZero() || n.BootID == "" || replaced(n, p.Own()) {
		return forcing{}
	}
	boots := s.Unknown(v, p)
	if len(boots) == 0 || slices.ContainsFunc(boots, func(b ledger.Boot) bool {
		return !b.IsOfAnother(n) || b.SystemUUID == ledger.OtherMachine || b.BootID == n.BootID
	}) {
		return forcing{}
	}
	since, idle := s.Idle(p)
	switch {
	case bars(s, v, p):
		since = n.MachineAt // the users there are the present machine's
	case !idle || !unused(s, p) || p.InUse:
		return forcing{}
	}
	var f forcing
	policy := policyOf(s, v)
	if limit := afterUnreachable(policy); limit >= 0 {
		f = f.sooner(timing{AfterUnreachable, limit, silence{since: n.MachineAt, until: now, least: leaseGrace}, false}.run(v, n, now))
	}
	if limit := afterPodGone(s, policy); limit >= 0 {
		f = f.sooner(timing{AfterPodGone, limit, silence{since: later(n.MachineAt, since), until: now, least: leaseGrace}, false}.run(v, n, now))
	}
	f.Former = f.Rule != ""
	return f
}

// bars says whether an exclusive volume must stay out of a node's volumesAttached: the earlier machine of
// that name may have it mounted, and the present machine would be a second writer.
func bars(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume) bool {
	return !p.Reported && mayBeOfAnotherMachine(s, v, p) && exclusive(access(s, v, v.Access))
}

// takeBack plans the detach of a volume from the earlier machine of a node's name, for a user at that node,
// once a rule of force holds.
func (p *planner) takeBack(node *ledger.Node, place *ledger.NodeVolume) {
	f := former(p.snapshot, p.volume, place, p.now)
	p.awaits(f)
	va := place.Own()
	switch {
	case !f.over():
		return
	case va == nil:
		// A volume that was left there is attached again to be detached. The hold gives a volume without
		// attachments to the present machine (holderNode).
		if !p.volume.ID.NoAttach() && p.mayCreate(node, place) && p.gone(place) {
			p.create(node, place)
		}
		return
	}
	if verdict, rule := p.safeToDetach(p.snapshot, p.volume, place, va, p.now); verdict.Allowed() && rule != "" && p.fenceWritten(place, va, rule) {
		p.detach(node, place, va, rule)
	}
}
