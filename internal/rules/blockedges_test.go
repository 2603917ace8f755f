// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// An asking user always blocks a scheduler, but the controller by rank only.
func TestWhoBlocks(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	ticket := func(kind ledger.TicketType, phase ledger.TicketPhase, created int64) ledger.Event {
		return ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "m"}, UID: "m", Version: "1", Type: kind, Node: "well", Phase: phase, Created: created, Volumes: []ledger.TicketVolume{{Claim: "data"}}}
	}
	user := ledger.User{Ticket: ledger.TicketID{Namespace: "shop", Name: "m"}}
	pod := func(phase ledger.PodPhase) ledger.Event {
		return ledger.Pod{UID: "q", Version: "1", Namespace: "shop", Name: "q", Node: "well", Phase: phase, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
	}
	fence := ledger.NodeState{Name: "well", UID: "w", Version: "2", Ready: ledger.ReadyUnknown, OutOfService: true, Managed: true, Reporting: true}
	zone := ledger.PersistentVolume{Name: "pv", Version: "2", Volume: id, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"},
		Affinity: ledger.NewNodeAffinity(ledger.NodeTerm{Labels: []ledger.NodeRequirement{{Key: "zone", Operator: ledger.NodeExists}}})}
	manual := Request{Type: ledger.TypeManual, Created: 5, Who: ledger.Requester{Ticket: true, UID: "r"}, Ticket: ledger.TicketID{Namespace: "shop", Name: "r"}}
	asPod := Request{Created: 5, Who: ledger.Requester{UID: "r"}, Pod: "r"}
	own := manual
	own.Ticket = user.Ticket
	for name, test := range map[string]struct {
		facts              []ledger.Event
		user               ledger.User
		request            Request
		scheduler, granted bool
	}{
		"a pod lives":                     {[]ledger.Event{pod(ledger.PodLive)}, ledger.User{Pod: "q"}, manual, true, true},
		"at a fenced node":                {[]ledger.Event{pod(ledger.PodLive), fence}, ledger.User{Pod: "q"}, manual, false, false},
		"a pod is leaving":                {[]ledger.Event{pod(ledger.PodTerminating)}, ledger.User{Pod: "q"}, manual, false, false},
		"nobody knows it":                 {nil, ledger.User{Pod: "q"}, manual, false, false},
		"granted":                         {[]ledger.Event{ticket(ledger.TypeManual, ledger.TicketGranted, 9)}, user, manual, true, true},
		"granted, and yields to a pod":    {[]ledger.Event{ticket(ledger.TypeBackup, ledger.TicketGranted, 1)}, user, asPod, true, true},
		"granted, and yields not to this": {[]ledger.Event{ticket(ledger.TypeBackup, ledger.TicketGranted, 9)}, user, Request{Type: ledger.TypeBackup, Created: 5, Ticket: manual.Ticket, Who: manual.Who}, true, true},
		"the requester itself":            {[]ledger.Event{ticket(ledger.TypeManual, ledger.TicketGranted, 9)}, user, own, false, false},
		"asks before":                     {[]ledger.Event{ticket(ledger.TypeManual, ledger.TicketPending, 1)}, user, manual, true, false}, // firstElsewhereOf
		"asks after":                      {[]ledger.Event{ticket(ledger.TypeManual, ledger.TicketPending, 9)}, user, manual, false, false},
		"asks at a fenced node":           {[]ledger.Event{ticket(ledger.TypeManual, ledger.TicketPending, 1), fence}, user, manual, false, false},
		"asks where it can't be used":     {[]ledger.Event{ticket(ledger.TypeManual, ledger.TicketPending, 1), zone}, user, manual, false, false},
		"granted where it can't be used":  {[]ledger.Event{ticket(ledger.TypeManual, ledger.TicketGranted, 1), zone}, user, manual, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _ := concerned(t, "", "well", ledger.Hold{State: ledger.HoldHeld}, func(l *ledger.Ledger) {
				for _, e := range test.facts {
					l.Apply(auditTime, e)
				}
			})
			v := s.Volume(id)
			place := &ledger.VolumeOnNode{Node: "well", Users: []ledger.User{test.user}}
			w := evaluation{snapshot: s, request: test.request, node: "dead", now: auditTime}
			if got := w.blocks(v, place, test.user); got != test.scheduler {
				t.Errorf("to a scheduler: %t", got)
			}
			w.queue = Arbiter{}.Queue(s, "dead", auditTime)
			if got := w.blocks(v, place, test.user); got != test.granted {
				t.Errorf("in a queue: %t", got)
			}
		})
	}
}

func TestWhatIsFull(t *testing.T) {
	volume := func(handle string) ledger.VolumeID { return ledger.VolumeID{Driver: "d", Handle: handle} }
	most := int32(2)
	attach := func(n ledger.NodeName, handle string) ledger.Attachment {
		return ledger.Attachment{Name: ledger.AttachmentName(volume(handle), n), UID: string(n) + handle, Version: "1", Driver: "d", Node: n, Inline: volume(handle), Attached: true}
	}
	refused := attach("well", "refused")
	refused.Attached, refused.AttachError = false, ledger.CallError{Code: ledger.ResourceExhausted, Message: "full"}
	drivers := func(limit int32) ledger.Event {
		return ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: limit}}}
	}
	ticket := func(phase ledger.TicketPhase) ledger.Event {
		return ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "q"}, UID: "t", Version: "1", Type: ledger.TypeManual, Node: "well", Phase: phase, Volumes: []ledger.TicketVolume{{PersistentVolume: "a"}}}
	}
	none := ledger.NodeDrivers{Node: "well", Version: "2"}
	own := func(reporting bool) ledger.Event {
		return nodeAs("well", func(n *ledger.NodeState) { n.UID, n.Managed, n.Reporting = "another", false, reporting })
	}
	for name, test := range map[string]struct {
		needs []string
		facts []ledger.Event
		want  Reason // zero: it is not full
	}{
		"needs nothing":                  {nil, []ledger.Event{none}, Reason{}},
		"needs what is there":            {[]string{"a"}, []ledger.Event{attach("well", "a"), refused}, Reason{}},
		"has room":                       {[]string{"a"}, []ledger.Event{drivers(2), attach("well", "x")}, Reason{}},
		"has room for one of two":        {[]string{"a", "b"}, []ledger.Event{drivers(2), attach("well", "x")}, Reason{Code: NoFreeSlot, Used: 1, Limit: 2, Needed: 2}},
		"has none":                       {[]string{"a"}, []ledger.Event{drivers(1), attach("well", "x")}, Reason{Code: NoFreeSlot, Used: 1, Limit: 1, Needed: 1}},
		"has none, by a policy":          {[]string{"a"}, []ledger.Event{drivers(4), ledger.Policy{Name: "p", Version: "1", Driver: "d", MaxSlots: &most}, attach("well", "x"), attach("well", "y")}, Reason{Code: NoFreeSlot, Used: 2, Limit: 2, Needed: 1, Policy: "p"}},
		"has a policy that changes none": {[]string{"a"}, []ledger.Event{drivers(2), ledger.Policy{Name: "p", Version: "1", Driver: "d", MaxSlots: &most}, attach("well", "x"), attach("well", "y")}, Reason{Code: NoFreeSlot, Used: 2, Limit: 2, Needed: 1}},
		"one attached, one new":          {[]string{"a", "b"}, []ledger.Event{drivers(1), attach("well", "a")}, Reason{Code: NoFreeSlot, Used: 1, Limit: 1, Needed: 1}},
		"attached elsewhere":             {[]string{"a"}, []ledger.Event{drivers(0), attach("dead", "a")}, Reason{Code: NoFreeSlot, Limit: 0, Needed: 1}},
		"reserved for itself":            {[]string{"a"}, []ledger.Event{drivers(1), ticket(ledger.TicketPending)}, Reason{}},
		"reserved, and another there":    {[]string{"a"}, []ledger.Event{drivers(1), ticket(ledger.TicketPending), attach("well", "x")}, Reason{Code: NoFreeSlot, Used: 1, Limit: 1, Needed: 1}},
		"any number":                     {[]string{"a", "b"}, []ledger.Event{drivers(ledger.NoLimit)}, Reason{}},
		"the driver is not there":        {[]string{"a"}, []ledger.Event{none}, Reason{}},
		"and has to be":                  {[]string{"a"}, []ledger.Event{none, ledger.Driver{Name: "d", Version: "2", AttachRequired: true, NeedsNode: true}}, Reason{Code: DriverNotRegistered}},
		"the driver refuses more":        {[]string{"a"}, []ledger.Event{refused}, Reason{Code: NodeExhausted}},
		"its kubelet attaches itself":    {[]string{"a"}, []ledger.Event{attach("well", "a"), own(true)}, Reason{Code: NodeUnmanaged}},
		"no kubelet says whether":        {[]string{"a"}, []ledger.Event{own(false)}, Reason{}},
		"it does, without the driver":    {[]string{"a"}, []ledger.Event{own(true), none}, Reason{}},
		"it does, and nothing attaches":  {[]string{"a"}, []ledger.Event{own(true), ledger.Driver{Name: "d", Version: "2"}}, Reason{}},
	} {
		t.Run(name, func(t *testing.T) {
			asks := ledger.Pod{UID: "q", Version: "1", Namespace: "shop", Name: "q"}
			for _, handle := range test.needs {
				asks.Volumes = append(asks.Volumes, ledger.PodVolume{Name: handle, Inline: volume(handle), Access: ledger.AccessMany})
			}
			s, _, _ := concerned(t, "", "", ledger.Hold{}, func(l *ledger.Ledger) {
				l.Apply(auditTime, asks)
				for _, e := range test.facts {
					l.Apply(auditTime, e)
				}
			})
			w := evaluation{snapshot: s, request: PodRequest(s, &asks), node: "well", now: auditTime}
			got, full := w.full(s.Node("well"), "d")
			if test.want != (Reason{}) {
				test.want.Driver, test.want.Node = "d", "well"
			}
			if full != (test.want != Reason{}) || full && got != test.want {
				t.Errorf("full: %t, %+v\nwant %+v", full, got, test.want)
			}
		})
	}
}

func TestOfWhichDriversSlotsAreNeeded(t *testing.T) {
	s, _, _ := concerned(t, "", "", ledger.Hold{}, func(l *ledger.Ledger) { l.Apply(auditTime, ledger.Driver{Name: "nfs", Version: "1"}) })
	w := evaluation{snapshot: s, now: auditTime}
	for _, v := range []ledger.VolumeID{{Driver: "e", Handle: "1"}, {Driver: "nfs", Handle: "1"}, {}, {Driver: "d", Handle: "1"}, {Driver: "kubernetes.io/iscsi", Handle: "1"}, {Driver: "e", Handle: "2"}} {
		w.request.Needs = append(w.request.Needs, Need{Volume: v})
	}
	if got := slices.Collect(w.drivers()); !slices.Equal(got, []string{"e", "nfs", "d"}) {
		t.Errorf("of %q", got)
	}
}

func TestAccessOfAVolume(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	placeholder := ledger.UnboundClaim("d", "u")
	for name, test := range map[string]struct {
		v    *ledger.Volume
		need ledger.Access
		want ledger.Access
	}{
		"as is known":                  {&ledger.Volume{ID: id, Access: ledger.AccessNode}, ledger.AccessMany, ledger.AccessNode},
		"nothing is known":             {&ledger.Volume{ID: id}, ledger.AccessMany, ledger.AccessMany},
		"nobody knows it":              {nil, ledger.AccessPod, ledger.AccessPod},
		"of a claim that is not bound": {&ledger.Volume{ID: placeholder, Access: ledger.AccessNode}, ledger.AccessMany, ledger.AccessMany},
		"shared":                       {&ledger.Volume{ID: id, Access: ledger.AccessMany}, ledger.AccessUnknown, ledger.AccessMany},
	} {
		s, _, _ := concerned(t, "", "", ledger.Hold{})
		if got := access(s, test.v, test.need); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestTriedWithAVolume(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	user := func(uid string, v ledger.VolumeID) ledger.Pod {
		return ledger.Pod{UID: uid, Version: "1", Namespace: "shop", Name: uid, Volumes: []ledger.PodVolume{{Name: "v", Inline: v}}}
	}
	for name, test := range map[string]struct {
		tried  string
		at     ledger.NodeName
		access ledger.Access
		want   bool
	}{
		"elsewhere":                 {"q", "dead", ledger.AccessNode, true},
		"here":                      {"q", "well", ledger.AccessNode, false},
		"here, and it is for a pod": {"q", "well", ledger.AccessPod, true},
		"the pod itself":            {"asks", "dead", ledger.AccessNode, false},
		"with another volume":       {"other", "dead", ledger.AccessNode, false},
		"one that nobody knows":     {"unknown", "dead", ledger.AccessNode, false},
	} {
		s, _, _ := concerned(t, "", "", ledger.Hold{}, func(l *ledger.Ledger) {
			for _, p := range []ledger.Pod{user("q", id), user("asks", id), user("other", ledger.VolumeID{Driver: "d", Handle: "other"})} {
				l.Apply(auditTime, p)
			}
		})
		d := &ledger.Delta{}
		d.Add(test.tried, test.at)
		w := evaluation{snapshot: s.With(d), request: Request{Pod: "asks"}, node: "well", now: auditTime}
		got := w.tried(Need{Name: "v", Volume: id}, test.access, HeldElsewhere)
		if len(got) > 0 != test.want || test.want && (got[0].Node != test.at || got[0].Who.UID != test.tried) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	s, _, _ := concerned(t, "", "", ledger.Hold{})
	if got := (evaluation{snapshot: s, node: "well"}).tried(Need{Volume: id}, ledger.AccessNode, HeldElsewhere); got != nil {
		t.Errorf("nothing is tried: %+v", got)
	}
	d := &ledger.Delta{}
	d.Add("p", "dead")
	if got := (evaluation{snapshot: s.With(d), node: "well"}).tried(Need{Volume: id}, ledger.AccessNode, HeldElsewhere); len(got) != 1 {
		t.Errorf("a pod is tried: %+v", got)
	}
}
