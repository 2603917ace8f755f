// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// former is the rule of a machine that may have a volume mounted, and whose node's name
// another machine has since, which is Ready. The times of the policy run for the first one
// from when the Node ceased to name it: a kubelet that lives would write to the Node of its
// name. They prove nothing, whatever the policy says of an unpublish: a driver that calls
// both machines by one name can't tell them apart (docs/decisions/0055).
//
// Where the driver calls them by different names, nobody could detach the volume from the
// first one (NodeReplaced), and no time runs.
//
// The machine that is there is never forced: its kubelet has reported, and does not list the
// volume, and nobody at the node uses it.
func former(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume, now time.Time) forcing {
	n := s.Node(p.Node)
	since, idle := s.Idle(p)
	if !ready(n) || !n.Reporting || n.MachineAt.IsZero() || !idle || !unused(s, p) || n.Lists(v.ID, p) || !Doubted(s, v, p) {
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
