// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func concerned(t *testing.T, podAt, heldAt ledger.NodeName, hold ledger.Hold, more ...func(*ledger.Ledger)) (ledger.Snapshot, *ledger.Volume, Need) {
	t.Helper()
	now := time.Unix(1000, 0)
	l := ledger.New()
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	for _, e := range []ledger.Event{
		ledger.NodeState{Name: "well", UID: "w", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true},
		ledger.NodeState{Name: "dead", UID: "x", Version: "1", Ready: ledger.ReadyUnknown, Managed: true, Reporting: true, InUse: []ledger.VolumeID{id}},
		ledger.NodeDrivers{Node: "well", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 4}}},
		ledger.NodeDrivers{Node: "dead", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 4}}},
		ledger.PersistentVolume{Name: "pv", Version: "1", Volume: id, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}},
		ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}, Version: "1", PersistentVolume: "pv", Bound: true},
		ledger.Pod{UID: "p", Version: "1", Namespace: "shop", Name: "db", Node: podAt, Phase: ledger.PodLive, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}},
	} {
		l.Apply(now, e)
	}
	hold.Node, hold.Version = heldAt, "1"
	l.Apply(now, ledger.HoldSeen{Volume: id, Hold: hold})
	for _, change := range more {
		change(l)
	}
	s := l.Snapshot()
	if s.Pod("p") == nil {
		return s, s.Volume(id), Need{}
	}
	return s, s.Volume(id), PodRequest(s, s.Pod("p")).Needs[0]
}

// The reason is about the dead node: advice must name it.
func TestConcernNamesTheNodeOfTheReason(t *testing.T) {
	s, v, _ := concerned(t, "well", "well", ledger.Hold{State: ledger.HoldUnknown, Reason: NodeUnreachable})
	r, ok := Arbiter{}.Concern(s, v, time.Unix(1000, 0))
	if !ok || r.Code != NodeUnreachable || r.Node != "dead" {
		t.Errorf("the reason is %s at %q (%t)", r.Code, r.Node, ok)
	}
}

// The reason is the hold's, or the missing grant.
func TestNoAttachmentIsNotAttaching(t *testing.T) {
	now := time.Unix(1000, 0)
	s, _, need := concerned(t, "dead", "dead", ledger.Hold{State: ledger.HoldDetachPending, Reason: NodeUnreachable})
	if r := (Arbiter{}).Explain(s, need, "dead", now).First(); r.Code != NodeUnreachable || r.Node != "dead" {
		t.Errorf("at a dead node: %s at %q", r.Code, r.Node)
	}
	s, _, need = concerned(t, "well", "elsewhere", ledger.Hold{State: ledger.HoldHeld})
	if r := (Arbiter{}).Explain(s, need, "well", now).First(); r.Code == Attaching {
		t.Errorf("another node has it by the hold: %s", r.Code)
	}
}

// NodeFenced needs a hold that says so.
func TestConcern(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		podAt, heldAt ledger.NodeName
		hold          ledger.Hold
		tainted       bool
		want          ledger.Code // empty: nothing
	}{
		"no node":                          {"dead", "", ledger.Hold{}, false, ""},
		"a node where it is not":           {"well", "third", ledger.Hold{State: ledger.HoldHeld}, true, ""},
		"a fenced node that has it":        {"dead", "dead", ledger.Hold{State: ledger.HoldHeld}, true, Detaching},
		"a fenced node that is to be told": {"dead", "dead", ledger.Hold{State: ledger.HoldHeld, Reason: NodeFenced}, true, NodeFenced},
		"a node that is told, and is not":  {"dead", "dead", ledger.Hold{State: ledger.HoldHeld, Reason: NodeFenced}, false, HeldElsewhere},
		"an attach that failed":            {"well", "well", ledger.Hold{State: ledger.HoldAttachFailed, Reason: AttachFailed}, true, AttachFailed},
	} {
		t.Run(name, func(t *testing.T) {
			s, v, _ := concerned(t, test.podAt, test.heldAt, test.hold, func(l *ledger.Ledger) {
				if test.tainted {
					l.Apply(now, ledger.NodeState{Name: "dead", UID: "x", Version: "2", Ready: ledger.ReadyUnknown, OutOfService: true, Managed: true, Reporting: true})
				}
			})
			r, ok := Arbiter{}.Concern(s, v, now)
			if ok != (test.want != "") || r.Code != test.want {
				t.Errorf("%q (%t), want %q", r.Code, ok, test.want)
			}
		})
	}
	if _, ok := (Arbiter{}).Concern(ledger.New().Snapshot(), nil, now); ok {
		t.Error("a volume that nobody knows has a concern")
	}
}

func TestNobodyWaitsForItself(t *testing.T) {
	now := time.Unix(1000, 0)
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	at := func(n ledger.NodeName) ledger.Attachment {
		return ledger.Attachment{Name: ledger.AttachmentName(id, n), UID: string(n), Version: "1", Driver: "d", Node: n, PersistentVolume: "pv", Attached: true}
	}
	promised := ledger.Hold{State: ledger.HoldUnknown, Reason: DetachFailed, Next: ledger.Promise{Node: "well", To: ledger.Requester{Namespace: "shop", Name: "db", UID: "p"}}}
	s, v, _ := concerned(t, "well", "third", promised, func(l *ledger.Ledger) {
		l.Apply(now, ledger.NodeState{Name: "dead", UID: "x", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
		l.Apply(now, ledger.NodeState{Name: "third", UID: "y", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
		failing := at("third")
		failing.Deleting, failing.DetachError = true, ledger.CallError{Message: "busy"}
		l.Apply(now, failing)
		l.Apply(now, at("well"))
	})
	a := Arbiter{Cooperative: true}
	if r, ok := a.Concern(s, v, now); !ok || r.Code != DetachFailed || r.Node != "third" {
		t.Errorf("the hold says %+v (%t)", r, ok)
	}
	for _, step := range a.Plan(s, id, now).Steps {
		if step.Kind == WriteHold && (step.Hold.State != ledger.HoldUnknown || step.Hold.Reason != DetachFailed) {
			t.Errorf("the hold is written as %s %s: %s", step.Hold.State, step.Hold.Reason, step.Hold.Message)
		}
	}
	const want = "an exclusive volume has attachments at 2 nodes: third (its detach fails), well"
	if found := a.AuditVolume(s, id, now); len(found) != 1 || found[0].Message != want || found[0].String() != "I1: d^h: "+want {
		t.Errorf("found %v, want %s", found, want)
	}
}

// No pod waits for the nodes of an old hold.
func TestSharedVolumeIsAttaching(t *testing.T) {
	s, _, need := concerned(t, "well", "elsewhere", ledger.Hold{State: ledger.HoldHeld}, func(l *ledger.Ledger) {
		l.Apply(time.Unix(1000, 0), ledger.PersistentVolume{Name: "pv", Version: "2", Volume: ledger.VolumeID{Driver: "d", Handle: "h"}, Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}})
	})
	if r := (Arbiter{}).Explain(s, need, "well", time.Unix(1000, 0)).First(); r.Code != Attaching {
		t.Errorf("it waits for %s", r.Code)
	}
}
