// SPDX-License-Identifier: Apache-2.0

package ledger

import "testing"

// The announcement keeps the slot until it is settled.
func TestAttachSent(t *testing.T) {
	v, n := VolumeID{"disk", "h"}, NodeName("n")
	pod := Pod{UID: "p", Version: "5", Namespace: "ns", Name: "p", Node: n, Volumes: []PodVolume{{Name: "v", Inline: v}}}
	finished := pod
	finished.Phase = PodFinished
	ticket := func(phase TicketPhase) Event {
		return Ticket{ID: TicketID{"ns", "t"}, UID: "t", Version: "5", Type: TypeManual, Phase: phase, Node: n, Volumes: []TicketVolume{{PersistentVolume: "pv"}}}
	}
	left := func(at NodeName, stays bool) Event {
		return HoldSeen{v, Hold{Version: "5", Node: at, Stays: stays}}
	}
	over := HoldSeen{v, Hold{Version: "6"}}
	for name, test := range map[string]struct {
		before, after Event
		want          bool
	}{
		"nobody":                           {nil, nil, false},
		"a pod":                            {pod, PodGone{"p"}, true},
		"a finished pod":                   {finished, PodGone{"p"}, false},
		"a granted ticket":                 {ticket(TicketGranted), TicketGone{ID: TicketID{"ns", "t"}}, true},
		"a ticket that asks":               {ticket(TicketPending), TicketGone{ID: TicketID{"ns", "t"}}, false},
		"a volume that was left there":     {left(n, true), over, true},
		"a volume that was left elsewhere": {left("m", true), over, false},
		"a volume that is held there":      {left(n, false), over, false},
	} {
		for _, freeze := range []bool{false, true} {
			l := New()
			apply := func(events ...Event) {
				for _, e := range events {
					if e != nil {
						l.Apply(start, e)
					}
					if freeze {
						l.Snapshot()
					}
				}
			}
			used := func() int32 { return l.Snapshot().Node(n).Driver(v.Driver).Used }
			apply(PersistentVolume{Name: "pv", Version: "1", Volume: v}, proofNode(n, "1"), test.before, AttachSent{Volume: v, Node: n}, test.after)
			if got := used() == 1; got != test.want {
				t.Errorf("%s (a snapshot after each: %t): the slot is used: %t, want %t", name, freeze, got, test.want)
			}
			apply(proofAttachment(v, n, "a", "7"), AttachmentGone{AttachmentName(v, n)})
			if got := used() == 1; got != test.want {
				t.Errorf("%s (a snapshot after each: %t): in the end the slot is used: %t, want %t", name, freeze, got, test.want)
			}
			touched := l.Apply(start, AttachResolved{Volume: v, Node: n})
			if used() != 0 || test.want && (len(touched.Nodes) != 1 || len(touched.Volumes) != 1) {
				t.Errorf("%s (a snapshot after each: %t): once settled, %d slots are used, touched %+v", name, freeze, used(), touched)
			}
		}
	}
}

func TestLeftVolumeHasItsSlot(t *testing.T) {
	v := VolumeID{"disk", "h"}
	for _, freeze := range []bool{false, true} {
		l := New()
		for i, step := range []struct {
			event Event
			n, m  int32 // slots used
		}{
			{HoldSeen{v, Hold{Version: "1", Node: "n"}}, 0, 0},
			{HoldSeen{v, Hold{Version: "2", Node: "n", Stays: true}}, 1, 0},
			{HoldSeen{v, Hold{Version: "1", Node: "n"}}, 1, 0}, // late
			{HoldSeen{v, Hold{Version: "3", Node: "m", Stays: true}}, 0, 1},
			{HoldSeen{v, Hold{Version: "4", Node: "m"}}, 0, 0},
			{HoldSeen{v, Hold{Version: "5", Node: "m", Stays: true}}, 0, 1},
			{HoldGone{Volume: v}, 0, 0},
		} {
			l.Apply(start, step.event)
			if freeze {
				l.Snapshot()
			}
			s := l.Snapshot()
			if n, m := s.Node("n").Driver("disk").Used, s.Node("m").Driver("disk").Used; n != step.n || m != step.m {
				t.Errorf("after event %d (a snapshot after each: %t): %d and %d slots are used, want %d and %d", i, freeze, n, m, step.n, step.m)
			}
		}
		if s := l.Snapshot(); s.Size() != 0 {
			t.Error("the volume is still known")
		}
	}
}

// The grant may have its effect until another version of the ticket, or its settlement.
func TestGrantSent(t *testing.T) {
	v, id := VolumeID{"disk", "h"}, TicketID{"ns", "t"}
	as := func(uid, version string, phase TicketPhase) Ticket {
		return Ticket{ID: id, UID: uid, Version: version, Type: TypeManual, Phase: phase, Node: "n", Volumes: []TicketVolume{{PersistentVolume: "pv"}}}
	}
	waits, sent := as("t", "5", TicketPending), GrantSent{ID: id, UID: "t", Version: "5"}
	for name, test := range map[string]struct {
		events []Event
		want   bool
	}{
		"sent":                           {[]Event{waits, sent}, true},
		"of another version":             {[]Event{waits, GrantSent{ID: id, UID: "t", Version: "4"}}, false},
		"of another ticket of the name":  {[]Event{waits, GrantSent{ID: id, UID: "u", Version: "5"}}, false},
		"it is granted":                  {[]Event{as("t", "5", TicketGranted), sent}, false},
		"it is gone":                     {[]Event{waits, TicketGone{ID: id}, sent, waits}, false},
		"seen again":                     {[]Event{waits, sent, waits}, true},
		"granted now":                    {[]Event{waits, sent, as("t", "6", TicketGranted)}, false},
		"changed":                        {[]Event{waits, sent, as("t", "6", TicketPending)}, false},
		"settled":                        {[]Event{waits, sent, GrantResolved{ID: id, UID: "t", Version: "5"}}, false},
		"an older one is settled":        {[]Event{waits, sent, GrantResolved{ID: id, UID: "t", Version: "4"}}, true},
		"another one's is settled":       {[]Event{waits, sent, GrantResolved{ID: id, UID: "u", Version: "5"}}, true},
		"in doubt, with the next leader": {[]Event{waits, sent, TicketInDoubt{ID: id, UID: "t"}}, false},
	} {
		l := New()
		l.Apply(start, PersistentVolume{Name: "pv", Version: "1", Volume: v})
		for _, e := range test.events {
			l.Apply(start, e)
		}
		if k := l.Snapshot().Ticket(id); (k != nil && k.Granting) != test.want {
			t.Errorf("%s: %+v", name, k)
		}
	}
	l := New()
	for _, e := range []Event{PersistentVolume{Name: "pv", Version: "1", Volume: v}, waits, sent} {
		l.Apply(start, e)
	}
	if touched := l.Apply(start, GrantResolved{ID: id, UID: "t", Version: "5"}); !touched.Own || len(touched.Tickets) != 1 || len(touched.Volumes) != 1 || touched.Volumes[0] != v {
		t.Errorf("that it is settled touched %+v", touched)
	}
}

func TestUnreportSent(t *testing.T) {
	iscsi, disk, n := VolumeID{"kubernetes.io/iscsi", "h"}, VolumeID{"disk", "h"}, NodeName("n")
	l := New()
	l.Apply(start, NodeState{Name: n, UID: "n", Version: "1", Ready: ReadyTrue, Managed: true, Reporting: true, Reported: []VolumeID{iscsi, disk}})
	leaves := func(v VolumeID) bool { return l.Snapshot().Volume(v).OnNode(n).UnreportSent }
	for _, step := range []struct {
		event   Event
		leaves  bool
		touches int
	}{
		{UnreportSent{disk, n}, false, 0},
		{UnreportSent{iscsi, "m"}, false, 0},
		{UnreportSent{iscsi, n}, true, 1},
		{UnreportSent{iscsi, n}, true, 0},
		{UnreportResolved{disk, n}, true, 0},
		{UnreportResolved{iscsi, n}, false, 1},
		{UnreportResolved{iscsi, n}, false, 0},
		{UnreportSent{iscsi, n}, true, 1},
		{NodeGone{n}, true, 2},
	} {
		touched := l.Apply(start, step.event)
		if _, gone := step.event.(NodeGone); len(touched.Volumes) < step.touches || step.touches == 0 && len(touched.Volumes) > 0 || !gone && !touched.Own {
			t.Errorf("%#v: touched %+v", step.event, touched)
		}
		if leaves(iscsi) != step.leaves || l.Snapshot().Volume(disk) != nil && leaves(disk) {
			t.Errorf("%#v: it leaves: %t, want %t", step.event, leaves(iscsi), step.leaves)
		}
		if l.Snapshot().Volume(iscsi).OnNode("m") != nil {
			t.Errorf("%#v: it is at a node that nobody has named", step.event)
		}
	}
}
