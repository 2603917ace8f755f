// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestVacant(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	attached := ledger.Attachment{Name: ledger.AttachmentName(id, "well"), UID: "a", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Ours: true, Attached: true}
	asked := ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "later"}, UID: "later", Version: "1", Type: ledger.TypeManual, Node: "well", Created: 9, Volumes: []ledger.TicketVolume{{Claim: "data"}}}
	granted := asked
	granted.Phase = ledger.TicketGranted
	waits, own := asked, granted
	waits.Reason = string(HeldElsewhere)
	own.ID.Name = "m"
	terminating := ledger.Pod{UID: "p", Version: "2", Namespace: "shop", Name: "db", Node: "well", Phase: ledger.PodTerminating, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
	request := Request{Type: ledger.TypeManual, Created: 5, Who: ledger.Requester{Ticket: true, Namespace: "shop", Name: "m", UID: "m"}, Ticket: ledger.TicketID{Namespace: "shop", Name: "m"}}
	for name, test := range map[string]struct {
		podAt            ledger.NodeName
		facts            []ledger.Event
		evicts, detached bool
	}{
		"somebody lives there":         {"well", nil, false, false},
		"somebody is about to go":      {"", []ledger.Event{terminating}, false, true},
		"attached, and nobody uses it": {"", []ledger.Event{attached}, false, true},
		"a ticket asks":                {"", []ledger.Event{asked}, false, false},
		"attached, and a ticket waits": {"", []ledger.Event{attached, waits}, false, true},
		"a ticket is granted":          {"", []ledger.Event{granted}, false, false},
		"attached, and a ticket asks":  {"", []ledger.Event{attached, asked}, false, false},
		"a ticket waits":               {"", []ledger.Event{waits}, true, true},
		"the request's own":            {"", []ledger.Event{own}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _ := concerned(t, test.podAt, "", ledger.Hold{}, func(l *ledger.Ledger) {
				for _, e := range test.facts {
					l.Apply(auditTime, e)
				}
			})
			place := s.Volume(id).OnNode("well")
			w := evaluation{snapshot: s, request: request, node: "well", now: auditTime}
			if got := w.vacant(place); got != test.evicts {
				t.Errorf("to a scheduler: %t", got)
			}
			w.detached = true
			if got := w.vacant(place); got != test.detached {
				t.Errorf("once all is detached that nobody needs: %t", got)
			}
		})
	}
}

func TestVacantOfTheEvicted(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	s, v, _ := concerned(t, "well", "", ledger.Hold{}, func(l *ledger.Ledger) {
		l.Apply(auditTime, ledger.Attachment{Name: ledger.AttachmentName(id, "well"), UID: "a", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Ours: true, Attached: true})
	})
	d := &ledger.Delta{}
	d.Remove("p")
	w := evaluation{snapshot: s.With(d), node: "well", now: auditTime}
	if !w.vacant(v.OnNode("well")) {
		t.Error("not to a scheduler that evicts its only user")
	}
	s, v, _ = concerned(t, "well", "", ledger.Hold{}, func(l *ledger.Ledger) {
		l.Apply(auditTime, ledger.Attachment{Name: ledger.AttachmentName(id, "well"), UID: "a", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Ours: true, Attached: true})
		l.Apply(auditTime, ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "later"}, UID: "later", Version: "1", Type: ledger.TypeManual, Node: "well", Created: 9,
			Reason: string(HeldElsewhere), Volumes: []ledger.TicketVolume{{Claim: "data"}}})
	})
	if w = (evaluation{snapshot: s.With(d), node: "well", now: auditTime}); !w.vacant(v.OnNode("well")) {
		t.Error("not where a ticket beside it merely waits")
	}
}

func TestSlotsOfADryRun(t *testing.T) {
	shared, export := ledger.VolumeID{Driver: "d", Handle: "shared"}, ledger.VolumeID{Driver: "nfs", Handle: "x"}
	pod := func(uid string, volumes ...ledger.VolumeID) ledger.Pod {
		p := ledger.Pod{UID: uid, Version: "1", Namespace: "shop", Name: uid}
		for _, v := range volumes {
			p.Volumes = append(p.Volumes, ledger.PodVolume{Name: v.Handle, Inline: v, Access: ledger.AccessMany})
		}
		return p
	}
	own := func(handle string) ledger.VolumeID { return ledger.VolumeID{Driver: "d", Handle: handle} }
	there := pod("there", own("there"))
	there.Node = "well"
	for name, test := range map[string]struct {
		tried []ledger.Pod
		want  int32 // also for nfs, a driver without attachments
		nfs   int32
	}{
		"none":                             {nil, 0, 0},
		"two of one volume":                {[]ledger.Pod{pod("a", shared), pod("b", shared)}, 1, 0},
		"two of their own":                 {[]ledger.Pod{pod("a", own("a")), pod("b", own("b"))}, 2, 0},
		"one with two":                     {[]ledger.Pod{pod("a", own("a"), shared)}, 2, 0},
		"of a volume that is there":        {[]ledger.Pod{pod("a", own("there"))}, 0, 0},
		"of a volume of the request":       {[]ledger.Pod{pod("a", own("asked"))}, 0, 0},
		"of another driver":                {[]ledger.Pod{pod("a", ledger.VolumeID{Driver: "e", Handle: "a"})}, 0, 0},
		"of a volume that is not attached": {[]ledger.Pod{pod("a", export)}, 0, 1},
		"the request's own":                {[]ledger.Pod{pod("asks", own("asked"), own("more"))}, 0, 0},
		"one of them at another node":      {[]ledger.Pod{pod("a", own("a")), pod("elsewhere", own("b"))}, 1, 0},
		"one that nobody knows any longer": {[]ledger.Pod{pod("unknown", own("a"))}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := &ledger.Delta{}
			s, _, _ := concerned(t, "", "", ledger.Hold{}, func(l *ledger.Ledger) {
				l.Apply(auditTime, ledger.Driver{Name: "nfs", Version: "1"})
				l.Apply(auditTime, there)
				for i := range test.tried {
					p := &test.tried[i]
					if p.UID != "unknown" {
						l.Apply(auditTime, *p)
					}
					n := ledger.NodeName("well")
					if p.UID == "elsewhere" {
						n = "dead"
					}
					d.Add(p.UID, n)
				}
			})
			asks := pod("asks", own("asked"))
			for _, driver := range []string{"d", "nfs"} {
				w := evaluation{snapshot: s.With(d), request: PodRequest(s, &asks), node: "well", now: auditTime}
				want := test.want
				if driver == "nfs" {
					want = test.nfs
				}
				if got := w.tryout(s.Node("well"), driver); got != want {
					t.Errorf("%d slots of %s more, want %d", got, driver, want)
				}
			}
		})
	}
}

// Only a free slot of the request's drivers makes a fit easier.
func TestEasedByWhat(t *testing.T) {
	l := ledger.New()
	node := func(version string, change func(*ledger.NodeState)) {
		n := ledger.NodeState{Name: "n", UID: "n", Version: version, Ready: ledger.ReadyTrue, Managed: true, Reporting: true}
		change(&n)
		l.Apply(auditTime, n)
	}
	attach := func(driver string) ledger.Attachment {
		v := ledger.VolumeID{Driver: driver, Handle: "h"}
		return ledger.Attachment{Name: ledger.AttachmentName(v, "n"), UID: driver, Version: "1", Driver: driver, Node: "n", Inline: v, Attached: true}
	}
	node("1", func(*ledger.NodeState) {})
	l.Apply(auditTime, ledger.NodeDrivers{Node: "n", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 4}, {Name: "e", Limit: 4}}})
	for _, driver := range []string{"d", "e"} {
		l.Apply(auditTime, attach(driver))
	}
	r := Request{Needs: []Need{{Volume: ledger.VolumeID{Driver: "d", Handle: "new"}}}}
	for _, test := range []struct {
		what   string
		change func()
		want   bool
	}{
		{"nothing", func() {}, false},
		{"it names its status anew", func() {
			node("2", func(n *ledger.NodeState) { n.Reported = []ledger.VolumeID{{Driver: "d", Handle: "h"}} })
		}, false},
		{"another driver's volume goes", func() { l.Apply(auditTime, ledger.AttachmentGone{Name: attach("e").Name}) }, false},
		{"it has other labels", func() { node("3", func(n *ledger.NodeState) { n.Labels = map[string]string{"zone": "a"} }) }, true},
		{"a volume of the driver goes", func() { l.Apply(auditTime, ledger.AttachmentGone{Name: attach("d").Name}) }, true},
		{"one of it comes", func() { l.Apply(auditTime, attach("d")) }, false},
	} {
		before := l.Snapshot()
		test.change()
		if got := Eased(before, l.Snapshot(), r, "n"); got != test.want {
			t.Errorf("%s: %t", test.what, got)
		}
	}
}
