// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// former is the rule of a machine that may have a volume mounted, and whose node's name
// another machine has since, which is Ready. The times of the policy run for the first one
// from when the Node ceased to name it: a kubelet that lives would write to the Node of its
// name. They prove nothing, whatever the policy says of an unpublish: a driver that calls
// both machines by one name can't tell them apart (docs/decisions/0042).
//
// Where the driver calls them by different names, nobody could detach the volume from the
// first one (NodeReplaced), and no time runs.
//
// The machine that is there is never forced: its kubelet has reported, and does not list the
// volume, and nobody at the node uses it. Or its Node does not name the volume as attached:
// then nothing is mounted there, whoever waits for it (bars).
func former(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume, now time.Time) forcing {
	n := s.Node(p.Node)
	since, idle := s.Idle(p)
	if !ready(n) || !n.Reporting || n.MachineAt.IsZero() || !Doubted(s, v, p) {
		return forcing{}
	}
	switch {
	case bars(s, v, p):
		since = n.MachineAt // those who use it there are of the machine that is there
	case !idle || !unused(s, p) || n.Lists(v.ID, p):
		return forcing{}
	}
	machine, boot := doubtedAt(n, v, p)
	if !ofAnotherMachine(n, v, p) || boot == "" || n.BootID == "" || boot == n.BootID || replaced(n, p.Own()) {
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
	if f.Rule != "" {
		f.Former = machine
	}
	return f
}

// bars says whether an exclusive volume must not be put into volumesAttached of a node: the
// machine that had the node's name before may have it mounted, and the one that is there would
// be the second to write to it.
func bars(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume) bool {
	return !p.Reported && Doubted(s, v, p) && mayBeOfAnotherMachine(s.Node(p.Node), v, p) && exclusive(access(s, v, v.Access))
}

// takeBack plans the detach of a volume from the machine that had a node's name before, for
// somebody who waits for it at that node, once a rule of force is over.
func (p *planner) takeBack(node *ledger.Node, place *ledger.NodeVolume) {
	f := former(p.snapshot, p.volume, place, p.now)
	p.awaits(f)
	va := place.Own()
	switch {
	case !f.over():
		return
	case va == nil:
		// What was left there is attached anew, so that it can be detached. What needs no
		// attachment the hold gives to the other machine (holderNode).
		if !p.volume.ID.NoAttach() && p.mayCreate(node, place) && p.gone(place) {
			p.create(node, place)
		}
		return
	}
	if verdict, rule := p.safeToDetach(p.snapshot, p.volume, place, va, p.now); verdict.Allowed() && rule != "" && p.fenceWritten(place, va, rule) {
		p.detach(node, place, va, rule)
	}
}
