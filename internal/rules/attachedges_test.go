// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// An attach that another controller began too early is tried again once.
func TestWhichAttachIsTriedAgain(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	failed := ledger.Attachment{
		Name: ledger.AttachmentName(id, "well"), UID: "a", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", NodeID: "i-1",
		AttachError: ledger.CallError{Code: 9, Message: "it is elsewhere"},
	}
	of := func(change func(*ledger.Attachment)) ledger.Attachment {
		a := failed
		change(&a)
		return a
	}
	alive := ledger.NodeState{Name: "dead", UID: "x", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true}
	for name, test := range map[string]struct {
		va    ledger.Attachment
		facts []ledger.Event
		want  bool
	}{
		"refused":                 {failed, []ledger.Event{alive}, true},
		"not refused":             {of(func(a *ledger.Attachment) { a.AttachError = ledger.CallError{} }), []ledger.Event{alive}, false},
		"attached since":          {of(func(a *ledger.Attachment) { a.Attached = true }), []ledger.Event{alive}, false},
		"of our own":              {of(func(a *ledger.Attachment) { a.Ours = true }), []ledger.Event{alive}, false},
		"tried again already":     {of(func(a *ledger.Attachment) { a.Confirmed = true }), []ledger.Event{alive}, false},
		"to another machine":      {of(func(a *ledger.Attachment) { a.NodeID = "i-2" }), []ledger.Event{alive}, false},
		"it may be elsewhere":     {failed, nil, false},
		"its user is about to go": {failed, []ledger.Event{alive, ledger.Pod{UID: "p", Version: "2", Namespace: "shop", Name: "db", Node: "well", Phase: ledger.PodTerminating, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}}, false},
	} {
		s, _, _ := concerned(t, "well", "well", ledger.Hold{State: ledger.HoldHeld, Transitions: 1}, func(l *ledger.Ledger) {
			l.Apply(auditTime, ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", NodeID: "i-1", Limit: 4}}})
			l.Apply(auditTime, test.va)
			for _, e := range test.facts {
				l.Apply(auditTime, e)
			}
		})
		v := s.Volume(id)
		p := Arbiter{Cooperative: true}.planner(s, v, auditTime)
		p.hold = *v.Hold
		place := v.OnNode("well")
		if got := p.mayRetry(s.Node("well"), place, place.Own()); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// In Cooperative mode only a bound pod counts, unless asked otherwise.
func TestForWhomAnAttachBegins(t *testing.T) {
	pod := func(phase ledger.PodPhase) ledger.Event {
		return ledger.Pod{UID: "p", Version: "2", Namespace: "shop", Name: "db", Node: "well", Phase: phase, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
	}
	ticket := func(phase ledger.TicketPhase) ledger.Event {
		return ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "m"}, UID: "m", Version: "1", Type: ledger.TypeManual, Node: "well", Phase: phase, Volumes: []ledger.TicketVolume{{Claim: "data"}}}
	}
	for name, test := range map[string]struct {
		user ledger.Event
		want bool
	}{
		"a pod":               {pod(ledger.PodLive), true},
		"one that is leaving": {pod(ledger.PodTerminating), false},
		"a granted ticket":    {ticket(ledger.TicketGranted), true},
		"a ticket that asks":  {ticket(ledger.TicketPending), false},
	} {
		s, v, _ := concerned(t, "", "well", ledger.Hold{State: ledger.HoldHeld}, func(l *ledger.Ledger) { l.Apply(auditTime, test.user) })
		for a, want := range map[Arbiter]bool{{}: test.want, {Cooperative: true}: test.want} {
			if got := a.planner(s, v, auditTime).startable(v.OnNode("well")); got != want {
				t.Errorf("%s, %+v: %t", name, a, got)
			}
		}
	}
}

// A written hold must name the node.
func TestGrantedByTheHold(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	s, v, _ := concerned(t, "", "well", ledger.Hold{State: ledger.HoldHeld})
	p := Arbiter{}.planner(s, v, auditTime)
	if !p.granted("well") || p.granted("dead") {
		t.Error("not as the hold says")
	}
	migrate := ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true}
	for _, named := range []bool{false, true} {
		hold := ledger.Hold{Requesters: []ledger.Requester{{Ticket: true, UID: "m"}}}
		if !named {
			hold.Requesters = nil
		}
		if p := plannerOf(t, Arbiter{}, "well", hold, migrate, asksAt("m", ledger.TypeLiveMigration, "dead", grantedNow)); p.granted("dead") != named {
			t.Errorf("the hold names a live migration: %t; it is granted where that takes it: %t", named, !named)
		}
	}
	unwritten := *v
	hold := *v.Hold
	hold.Version = ""
	unwritten.Hold = &hold
	if (Arbiter{}).planner(s, &unwritten, auditTime).granted("well") {
		t.Error("by a hold that is not written")
	}
	unwritten.Hold = nil
	if (Arbiter{}).planner(s, &unwritten, auditTime).granted("well") {
		t.Error("by none")
	}
	s, _, _ = concerned(t, "", "well", ledger.Hold{State: ledger.HoldHeld}, func(l *ledger.Ledger) {
		l.Apply(auditTime, ledger.PersistentVolume{Name: "pv", Version: "2", Volume: id, Access: ledger.AccessMany})
	})
	if !(Arbiter{}).planner(s, s.Volume(id), auditTime).granted("dead") {
		t.Error("a shared volume is granted by no hold")
	}
}

func TestUnansweredDetachIsTold(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	leaving := ledger.Attachment{Name: ledger.AttachmentName(id, "well"), UID: "a", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Ours: true, Attached: true, Deleting: true, DeletedAt: 77}
	told := Reason{Code: DetachUnanswered, Volume: id, Claim: "data", Node: "well", Driver: "d", Since: 77}
	for name, test := range map[string]struct {
		after time.Duration
		hold  ledger.Hold
		want  ledger.Code
	}{
		"at once":               {0, ledger.Hold{}, Detaching},
		"soon":                  {time.Minute - 1, ledger.Hold{}, Detaching},
		"after a minute":        {time.Minute, ledger.Hold{}, DetachUnanswered},
		"it is told already":    {0, ledger.Hold{Reason: told.Code, Message: told.Message()}, DetachUnanswered},
		"of another, in words":  {0, ledger.Hold{Reason: told.Code, Message: "another"}, Detaching},
		"of another, by reason": {0, ledger.Hold{Reason: DetachFailed, Message: told.Message()}, Detaching},
		"there is no hold":      {0, ledger.Hold{State: ledger.HoldFree}, Detaching},
	} {
		s, _, _ := concerned(t, "", "well", test.hold, func(l *ledger.Ledger) {
			l.Apply(auditTime, leaving)
			if test.hold.State == ledger.HoldFree {
				l.Apply(auditTime, ledger.HoldGone{Volume: id})
			}
		})
		v := s.Volume(id)
		p := Arbiter{}.planner(s, v, auditTime.Add(test.after))
		if r := p.stuck(v.OnNode("well")); r.Code != test.want {
			t.Errorf("%s: %s, want %s", name, r.Code, test.want)
		}
		want := time.Time{}
		if test.want == Detaching {
			want = auditTime.Add(time.Minute)
		}
		if !p.plan.Recheck.Equal(want) {
			t.Errorf("%s: looked at again at %s, want %s", name, p.plan.Recheck, want)
		}
	}
}

// the first user, or else the node
func TestWhoStillUses(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	pod := func(name string, phase ledger.PodPhase) ledger.Event {
		return ledger.Pod{UID: "u-" + name, Version: "2", Namespace: "shop", Name: name, Node: "well", Phase: phase, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
	}
	ready := ledger.NodeState{Name: "well", UID: "w", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, InUse: []ledger.VolumeID{id}}
	silent := ready
	silent.Ready = ledger.ReadyUnknown
	for name, test := range map[string]struct {
		facts []ledger.Event
		code  ledger.Code
		who   string
	}{
		"two live, the first comes first": {[]ledger.Event{pod("a", ledger.PodLive), pod("b", ledger.PodLive), ready}, HeldElsewhere, "a"},
		"two live":                        {[]ledger.Event{pod("b", ledger.PodLive), pod("a", ledger.PodLive), ready}, HeldElsewhere, "a"},
		"one is leaving":                  {[]ledger.Event{pod("a", ledger.PodTerminating), ready}, InUse, ""},
		"one lives, another leaves":       {[]ledger.Event{pod("a", ledger.PodTerminating), pod("b", ledger.PodLive), ready}, HeldElsewhere, "b"},
		"one leaves, and nobody answers":  {[]ledger.Event{pod("a", ledger.PodTerminating), silent}, NodeUnreachable, ""},
	} {
		s, _, _ := concerned(t, "", "well", ledger.Hold{}, func(l *ledger.Ledger) {
			for _, e := range test.facts {
				l.Apply(auditTime, e)
			}
		})
		v := s.Volume(id)
		if r := stuckAt(Arbiter{}, s, v, v.OnNode("well"), auditTime); r.Code != test.code || r.Who.Name != test.who {
			t.Errorf("%s: %s for %q, want %s for %q", name, r.Code, r.Who.Name, test.code, test.who)
		}
	}
}

func TestWhatARequestNeeds(t *testing.T) {
	s, _, _ := concerned(t, "", "", ledger.Hold{})
	pod := &ledger.Pod{UID: "q", Namespace: "shop", Name: "q"}
	for _, claim := range []string{"missing", "data", "gone", "data"} {
		pod.Volumes = append(pod.Volumes, ledger.PodVolume{Name: claim, Claim: claim})
	}
	var got []string
	for _, need := range PodRequest(s, pod).Needs {
		got = append(got, need.Name)
	}
	if len(got) != 3 || got[0] != "missing" || got[1] != "data" || got[2] != "gone" {
		t.Errorf("it needs %q", got)
	}
}

func TestWhatIsInTheWay(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	well := ledger.NodeState{Name: "well", UID: "w", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true}
	unmanaged := well
	unmanaged.Managed = false
	alive := ledger.NodeState{Name: "dead", UID: "x", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true}
	pv := func(access ledger.Access, deleting bool) ledger.Event {
		return ledger.PersistentVolume{Name: "pv", Version: "2", Volume: id, Access: access, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}, Deleting: deleting}
	}
	other := ledger.Attachment{Name: "theirs", UID: "n", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Attached: true}
	first := ledger.PersistentVolume{Name: "pv", Version: "0", Volume: ledger.VolumeID{Driver: "d", Handle: "before"}}
	inline := ledger.Pod{UID: "i", Version: "1", Namespace: "shop", Name: "i", Node: "well", Volumes: []ledger.PodVolume{{Name: "v", Inline: id}}}
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  ledger.Code // empty: nothing
		node  ledger.NodeName
	}{
		"nothing":                         {[]ledger.Event{alive}, "", ""},
		"the node is gone":                {[]ledger.Event{alive, ledger.NodeGone{Name: "well"}}, NodeMissing, "well"},
		"the node is not managed":         {[]ledger.Event{alive, unmanaged}, NodeUnmanaged, "well"},
		"the driver is not there":         {[]ledger.Event{alive, ledger.NodeDrivers{Node: "well", Version: "2"}}, DriverNotRegistered, "well"},
		"the volume goes away":            {[]ledger.Event{alive, pv(ledger.AccessNode, true)}, "", ""},
		"no PersistentVolume":             {[]ledger.Event{alive, ledger.PersistentVolumeGone{Name: "pv"}}, ClaimLost, "well"},
		"none, and a pod names it inline": {[]ledger.Event{alive, ledger.PersistentVolumeGone{Name: "pv"}, inline}, "", ""},
		"it may be elsewhere":             {nil, NodeUnreachable, "dead"},
		"it may be, and is shared":        {[]ledger.Event{pv(ledger.AccessMany, false)}, "", ""},
	} {
		s, _, _ := concerned(t, "well", "well", ledger.Hold{State: ledger.HoldHeld, Transitions: 1}, func(l *ledger.Ledger) {
			for _, e := range test.facts {
				l.Apply(auditTime, e)
			}
		})
		v := s.Volume(id)
		p := Arbiter{}.planner(s, v, auditTime)
		p.hold = *v.Hold
		got := p.blockers(s.Node("well"), v.OnNode("well"))
		if len(got) > 0 != (test.want != "") || test.want != "" && (got[0].Code != test.want || got[0].Node != test.node) {
			t.Errorf("%s: %+v, want %s at %s", name, got, test.want, test.node)
		}
	}
	l := ledger.New()
	for _, e := range []ledger.Event{first, other, well, ledger.NodeDrivers{Node: "well", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "d"}}}, pv(ledger.AccessMany, false)} {
		l.Apply(auditTime, e)
	}
	s := l.Snapshot()
	got := Arbiter{}.planner(s, s.Volume(id), auditTime).blockers(s.Node("well"), &ledger.VolumeOnNode{Node: "well"})
	if len(got) != 1 || got[0].Code != VolumeReplaced || got[0].Detail != "theirs" {
		t.Errorf("what blocks an attach beside an attachment of another volume that names the same PersistentVolume: %+v", got)
	}
}

func TestBoundsAreThoseOfTheAPI(t *testing.T) {
	for _, test := range []struct {
		kind, field string
		bound       int
	}{
		{"volumetickets", "volumes", MaxVolumes},
		{"volumeholds", "requesters", maxListed},
		{"volumeholds", "waiting", maxListed},
		{"volumeholds", "fenced", maxFences},
	} {
		text, err := os.ReadFile("../../charts/moorage/files/crds/moorage.dev_" + test.kind + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		list := regexp.MustCompile(`(?s)\n +` + test.field + `:\n.*?\n +maxItems: (\d+)\n`).FindSubmatch(text)
		if list == nil || string(list[1]) != strconv.Itoa(test.bound) {
			t.Errorf("%s of %s: not bounded by %d", test.field, test.kind, test.bound)
		}
	}
}
