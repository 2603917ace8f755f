// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// More refusals than Moorage's own would keep pods off nodes that kube-scheduler would take.
func TestFitLeavesTheRestToOthers(t *testing.T) {
	id := ledger.VolumeID{Driver: "disk", Handle: "h"}
	node := func(change func(*ledger.NodeState)) ledger.NodeState {
		n := ledger.NodeState{Name: "n1", UID: "n1", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true}
		change(&n)
		return n
	}
	attachment := func(change func(*ledger.Attachment)) ledger.Attachment {
		a := ledger.Attachment{
			Name: ledger.AttachmentName(id, "n1"), UID: "va", Version: "1", Driver: "disk", Node: "n1", PersistentVolume: "pv", Ours: true,
		}
		change(&a)
		return a
	}
	elsewhere := attachment(func(a *ledger.Attachment) { a.Name, a.Node, a.Attached = ledger.AttachmentName(id, "n2"), "n2", true })
	for name, events := range map[string][]ledger.Event{
		"as it should be":        nil,
		"draining":               {node(func(n *ledger.NodeState) { n.Draining = true })},
		"not ready":              {node(func(n *ledger.NodeState) { n.Ready = ledger.ReadyFalse })},
		"unknown":                {node(func(n *ledger.NodeState) { n.Ready = ledger.ReadyUnknown })},
		"has not reported":       {node(func(n *ledger.NodeState) { n.Reporting = false })},
		"volume in use there":    {node(func(n *ledger.NodeState) { n.InUse = []ledger.VolumeID{id} })},
		"volume reported there":  {node(func(n *ledger.NodeState) { n.Reported = []ledger.VolumeID{id} })},
		"attach under way there": {attachment(func(*ledger.Attachment) {})},
		"attach refused there":   {attachment(func(a *ledger.Attachment) { a.AttachError = ledger.CallError{Code: 13, Message: "busy"} })},
		"detach under way there": {attachment(func(a *ledger.Attachment) { a.Attached, a.Deleting = true, true })},
		"detach refused there": {attachment(func(a *ledger.Attachment) {
			a.Deleting, a.DetachError = true, ledger.CallError{Code: 13, Message: "busy"}
		})},
		"left behind at another":   {elsewhere},
		"kept at another":          {ledger.Policy{Name: "p", Version: "1", Driver: "disk", DetachDelay: 1 << 40}, elsewhere},
		"in use at a dead node":    {elsewhere, ledger.NodeState{Name: "n2", UID: "n2", Version: "2", Ready: ledger.ReadyUnknown, Managed: true, Reporting: true, InUse: []ledger.VolumeID{id}}},
		"terminating pod has it":   {ledger.Pod{UID: "old", Version: "1", Namespace: namespace, Name: "old", Node: "n2", Phase: ledger.PodTerminating, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}},
		"finished pod had it":      {ledger.Pod{UID: "old", Version: "1", Namespace: namespace, Name: "old", Node: "n2", Phase: ledger.PodFinished, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}},
		"an undecided ticket":      {ledger.Ticket{ID: ledger.TicketID{Namespace: namespace, Name: "s"}, UID: "s", Version: "1", Type: ledger.TypeEviction, Node: "n1", Volumes: []ledger.TicketVolume{{Claim: "data"}}}},
		"the hold is another's":    {ledger.HoldSeen{Volume: id, Hold: ledger.Hold{Version: "1", Node: "n2", Transitions: 3, State: ledger.HoldHeld}}},
		"the hold waits to detach": {elsewhere, ledger.HoldSeen{Volume: id, Hold: ledger.Hold{Version: "1", Node: "n2", Transitions: 3, State: ledger.HoldDetachPending, Reason: rules.DetachFailed}}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			for _, n := range []ledger.NodeName{"n1", "n2"} {
				c.ledger.Apply(c.Now, ledger.NodeState{Name: n, UID: string(n), Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
				c.ledger.Apply(c.Now, ledger.NodeDrivers{Node: n, Version: "1", Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: string(n), Limit: 1}}})
			}
			key := ledger.ClaimKey{Namespace: namespace, Name: "data"}
			c.ledger.Apply(c.Now, ledger.PersistentVolume{Name: "pv", UID: "pv", Version: "1", Volume: id, Access: ledger.AccessNode, Claim: key})
			c.ledger.Apply(c.Now, ledger.Claim{Key: key, UID: "claim", Version: "1", Bound: true, PersistentVolume: "pv", Access: ledger.AccessNode})
			for _, e := range events {
				c.ledger.Apply(c.Now, e)
			}
			pod := ledger.Pod{UID: "p", Version: "1", Namespace: namespace, Name: "p", Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
			c.ledger.Apply(c.Now, pod)
			s := c.ledger.Snapshot()
			if v := c.arb.Fit(s, rules.PodRequest(s, &pod), "n1", c.Now); !v.Allowed() {
				t.Errorf("refused: %s", v.First().Message())
			}
		})
	}
}
