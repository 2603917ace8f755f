// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func crowded(limit int32, pods ...ledger.Pod) (*ledger.Ledger, func(name string) ledger.VolumeID) {
	l := ledger.New()
	volume := func(name string) ledger.VolumeID { return ledger.VolumeID{Driver: "d", Handle: name} }
	l.Apply(auditTime, ledger.NodeState{Name: "n", UID: "n", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
	l.Apply(auditTime, ledger.NodeDrivers{Node: "n", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "d", NodeID: "n", Limit: limit}}})
	for _, p := range pods {
		p.Version, p.Namespace, p.Name, p.Node, p.Volumes = "1", "shop", p.UID, "n", []ledger.PodVolume{{Name: "v", Claim: p.UID}}
		key := ledger.ClaimKey{Namespace: "shop", Name: p.UID}
		l.Apply(auditTime, ledger.PersistentVolume{Name: p.UID, Version: "1", Volume: volume(p.UID), Access: ledger.AccessMany, Claim: key})
		l.Apply(auditTime, ledger.Claim{Key: key, UID: p.UID, Version: "1", PersistentVolume: p.UID, Bound: true, Access: ledger.AccessMany})
		l.Apply(auditTime, p)
	}
	l.Apply(auditTime, ledger.Complete{})
	return l, volume
}

func attaches(a Arbiter, s ledger.Snapshot, names ...string) string {
	list := ""
	for _, name := range names {
		for _, step := range a.Plan(s, ledger.VolumeID{Driver: "d", Handle: name}, auditTime).Steps {
			if step.Kind == CreateAttachment {
				list += name
			}
		}
	}
	return list
}

// A granted ticket keeps its slot. Pods without an opt-in, or that have run, wait for none.
func TestWhoGetsTheLastSlot(t *testing.T) {
	pod := func(uid string, bound int64) ledger.Pod { return ledger.Pod{UID: uid, Bound: bound, Created: 1} }
	optedOut, started := pod("c", 3), pod("c", 3)
	optedOut.OptedOut, started.Started = true, true
	d := func(name string) ledger.VolumeID { return ledger.VolumeID{Driver: "d", Handle: name} }
	attachment := ledger.Attachment{Name: ledger.AttachmentName(d("x"), "n"), UID: "x", Version: "1", Driver: "d", Node: "n", PersistentVolume: "x", Ours: true, Attached: true}
	leaving := attachment
	leaving.Deleting = true
	for name, test := range map[string]struct {
		limit  int32
		pods   []ledger.Pod
		events []ledger.Event
		want   string
	}{
		"room for all":                    {3, []ledger.Pod{pod("a", 2), pod("b", 1), pod("c", 3)}, nil, "abc"},
		"room for one":                    {1, []ledger.Pod{pod("a", 2), pod("b", 1), pod("c", 3)}, nil, "b"},
		"room for two":                    {2, []ledger.Pod{pod("a", 2), pod("b", 1), pod("c", 3)}, nil, "ab"},
		"bound at once":                   {1, []ledger.Pod{pod("b", 2), pod("a", 2)}, nil, "a"},
		"it is not known when":            {1, []ledger.Pod{pod("b", 2), pod("a", 0)}, nil, "a"},
		"one is taken":                    {1, []ledger.Pod{pod("a", 2)}, []ledger.Event{attachment}, ""},
		"one is leaving":                  {1, []ledger.Pod{pod("a", 2)}, []ledger.Event{leaving}, ""},
		"one is sent":                     {1, []ledger.Pod{pod("a", 2), pod("b", 1)}, []ledger.Event{ledger.AttachSent{Volume: d("b"), Node: "n"}}, ""},
		"one has failed":                  {1, []ledger.Pod{pod("a", 2), pod("b", 1)}, []ledger.Event{ledger.AttachSent{Volume: d("b"), Node: "n"}, ledger.AttachResolved{Volume: d("b"), Node: "n", Failed: true}}, "ab"},
		"the first has no volume":         {1, []ledger.Pod{pod("a", 2), pod("b", 1)}, []ledger.Event{ledger.PersistentVolumeGone{Name: "b"}}, "a"},
		"the first is on its way out":     {1, []ledger.Pod{pod("a", 2), pod("b", 1)}, []ledger.Event{ledger.Pod{UID: "b", Version: "2", Namespace: "shop", Name: "b", Node: "n", Phase: ledger.PodTerminating, Volumes: []ledger.PodVolume{{Name: "v", Claim: "b"}}}}, "a"},
		"one did not opt in":              {1, []ledger.Pod{pod("a", 2), pod("b", 1), optedOut}, nil, "bc"},
		"one has run":                     {1, []ledger.Pod{pod("a", 2), pod("b", 1), started}, nil, "bc"},
		"of no limit":                     {ledger.NoLimit, []ledger.Pod{pod("a", 2), pod("b", 1)}, nil, "ab"},
		"of a limit of none":              {0, []ledger.Pod{pod("a", 2), pod("b", 1)}, nil, ""},
		"a ticket is granted another one": {1, []ledger.Pod{pod("a", 2)}, []ledger.Event{ledger.PersistentVolume{Name: "t", Version: "1", Volume: d("t"), Access: ledger.AccessMany}, ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "t"}, UID: "t", Version: "1", Type: ledger.TypeManual, Node: "n", Phase: ledger.TicketGranted, Volumes: []ledger.TicketVolume{{PersistentVolume: "t"}}}}, "t"},
	} {
		l, _ := crowded(test.limit, test.pods...)
		for _, e := range test.events {
			if _, is := e.(ledger.Attachment); is {
				l.Apply(auditTime, ledger.PersistentVolume{Name: "x", Version: "1", Volume: d("x"), Access: ledger.AccessMany})
			}
			l.Apply(auditTime, e)
		}
		if got := attaches(Arbiter{}, l.Snapshot(), "a", "b", "c", "t"); got != test.want {
			t.Errorf("%s: attached are %q, want %q", name, got, test.want)
		}
	}
}

func TestNoSlotsInCooperativeMode(t *testing.T) {
	l, _ := crowded(1, ledger.Pod{UID: "a"}, ledger.Pod{UID: "b"})
	for _, name := range []string{"a", "b"} {
		p := Arbiter{Cooperative: true}.planner(l.Snapshot(), l.Snapshot().Volume(ledger.VolumeID{Driver: "d", Handle: name}), auditTime)
		if reasons := p.blockers(p.snapshot.Node("n"), p.volume.OnNode("n")); len(reasons) > 0 {
			t.Errorf("%s waits: %v", name, reasons)
		}
	}
}

func TestAwaitSlots(t *testing.T) {
	l, volume := crowded(1, ledger.Pod{UID: "a"}, ledger.Pod{UID: "b"})
	l.Apply(auditTime, ledger.AttachSent{Volume: volume("a"), Node: "n", Limit: 1})
	if list := AwaitSlots(l.Snapshot(), "n"); len(list) != 1 || list[0] != volume("b") {
		t.Errorf("they are %v", list)
	}
	if list := AwaitSlots(l.Snapshot(), "other"); list != nil {
		t.Errorf("at no node they are %v", list)
	}
	touched := l.Apply(auditTime, ledger.AttachResolved{Volume: volume("a"), Node: "n", Failed: true})
	if len(touched.Nodes) != 1 {
		t.Errorf("a slot that comes free touches the nodes %v", touched.Nodes)
	}
}
