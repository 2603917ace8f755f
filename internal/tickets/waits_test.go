// SPDX-License-Identifier: Apache-2.0

package tickets

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/ticketwriter"
)

type scene struct {
	*Keeper
	w  *ticketwriter.Writer
	at time.Time
}

func newScene(t *testing.T, events ...ledger.Event) *scene {
	t.Helper()
	s := &scene{w: &ticketwriter.Writer{Ledger: facts(append([]ledger.Event{
		ledger.NodeDrivers{Node: "n2", Version: "1", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 2}}}}, events...)...)}, at: now}
	k, err := New(Config{Cache: s.w, Write: s.w, Now: func() time.Time { return s.at }, Order: &sync.Mutex{}, Waits: &Waits{}})
	if err != nil {
		t.Fatal(err)
	}
	s.Keeper = k
	return s
}

func (s *scene) decideAt(t *testing.T, nodes ...ledger.NodeName) (again time.Duration) {
	t.Helper()
	for _, n := range nodes {
		after, err := s.grantAt(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		s.writing.Wait()
		again = after
	}
	return again
}

func (s *scene) granted(name string) bool {
	t := s.w.Snapshot().Ticket(ledger.TicketID{Namespace: "s", Name: "uid-" + name})
	return t != nil && t.Phase == ledger.TicketGranted
}

func (s *scene) reserve(t *testing.T, p ledger.Pod, n ledger.NodeName) bool {
	t.Helper()
	ctx := t.Context()
	s.term.Store(&ctx)
	return reserve(s.Keeper, s.w, p, n, s.at)
}

func (s *scene) refused(t *testing.T, p ledger.Pod, nodes ...ledger.NodeName) {
	t.Helper()
	facts := s.w.Snapshot()
	r := rules.PodRequest(facts, &p)
	var full []ledger.NodeName
	var asks []Ask
	for _, n := range nodes {
		v := s.config.Arbiter.Fit(facts, r, n, s.at)
		if v.Allowed() {
			t.Fatalf("pod %s fits %s", p.Name, n)
		}
		for _, reason := range v.Reasons {
			if reason.Code == rules.NoFreeSlot {
				full = append(full, n)
			}
		}
		asks = append(asks, Asks(s.config.Arbiter, facts, r, n, s.at)...)
	}
	s.config.Waits.Note(s.at, p, full, asks)
}

func granted(k ledger.Ticket) ledger.Ticket {
	k.Phase, k.SatisfiedSince = ledger.TicketGranted, now.Unix()
	return k
}

func aged(k ledger.Ticket, created int64) ledger.Ticket {
	k.Created = created
	return k
}

func (s *scene) asked(name string) []rules.Reason {
	facts := s.w.Snapshot()
	return s.config.Waits.asked(s.config.Arbiter, facts, facts.Ticket(ledger.TicketID{Namespace: "s", Name: "uid-" + name}), s.at)
}

func TestTicketYieldsToAPodThatItAloneKeeps(t *testing.T) {
	backup := granted(ticket("backup", "n1", ledger.TypeBackup, "a"))
	waits := pod("waits", "", "a", "b")
	s := newScene(t, backup, waits)
	s.refused(t, waits, "n2")
	if asked := s.asked("backup"); len(asked) != 1 || asked[0].Who.Name != "waits" || asked[0].Node != "n2" || asked[0].Volume.Handle != "a" {
		t.Fatalf("it is asked for %+v", asked)
	}
	if s.keeps(s.w.Snapshot(), s.w.Snapshot().Ticket(backup.ID)).Allowed() {
		t.Error("it may keep its grant")
	}
	s.at = s.at.Add(time.Hour) // longer than anything is kept for the pod
	if len(s.asked("backup")) != 1 {
		t.Error("it is asked no longer, and the pod waits still")
	}
	s.w.Apply(pod("other", "n1", "b")) // now the pod also waits for another volume
	if asked := s.asked("backup"); len(asked) > 0 {
		t.Errorf("it is asked in vain for %+v", asked)
	}
	s.w.Apply(ledger.PodGone{UID: "uid-other"})
	s.w.Apply(ledger.NodeState{Name: "n2", UID: "n2", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, Draining: true})
	if asked := s.asked("backup"); len(asked) > 0 {
		t.Errorf("it is asked for a node that takes no pods: %+v", asked)
	}
	s.w.Apply(ledger.NodeState{Name: "n2", UID: "n2", Version: "3", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
	s.w.Apply(ledger.PodGone{UID: waits.UID})
	if asked := s.asked("backup"); len(asked) > 0 {
		t.Errorf("it is asked for a pod that is gone: %+v", asked)
	}
	if s.podsTouched(s.w.Snapshot(), []string{waits.UID}); s.config.Waits.Len() != 0 {
		t.Error("a pod that is gone is waited for")
	}
}

func TestNobodyAsksWhoDoesNotYield(t *testing.T) {
	copies, waits := granted(ticket("copy", "n1", ledger.TypeClone, "a")), pod("waits", "", "a")
	s := newScene(t, copies, waits)
	s.refused(t, waits, "n2")
	if asked := s.asked("copy"); len(asked) > 0 {
		t.Errorf("a clone is asked for %+v", asked)
	}
	backup := granted(ticket("backup", "n1", ledger.TypeBackup, "b"))
	waits = pod("waits", "", "b")
	s = newScene(t, backup, waits)
	s.refused(t, waits, "n2")
	backup.UID, backup.Version = "again", "9"
	s.w.Apply(ledger.TicketGone{ID: backup.ID})
	s.w.Apply(backup)
	if asked := s.asked("backup"); len(asked) > 0 {
		t.Errorf("a ticket that was made again is asked for %+v", asked)
	}
}

// For a minute, from later tickets only. The next freed volume restarts the minute.
func TestFreedVolumeIsKeptForAPod(t *testing.T) {
	waits := pod("waits", "", "a", "b")
	holds := pod("holds", "n1", "a")
	s := newScene(t, waits, holds, aged(ticket("after", "n1", ledger.TypeBackup, "a"), 5))
	s.refused(t, waits, "n2")
	s.decideAt(t, "n1") // both could have it at the holder's node
	if s.granted("after") {
		t.Fatal("a ticket that ranks after the pod has its volume")
	}
	s.w.Apply(ledger.PodGone{UID: holds.UID})
	for range 3 {
		if again := s.decideAt(t, "n1"); s.granted("after") || again == 0 {
			t.Fatalf("after %s the ticket has the volume (%t), or is not decided on again: %s", s.at.Sub(now), s.granted("after"), again)
		}
		s.at = s.at.Add(keepFor/3 - time.Second)
		s.config.Waits.Note(s.at, waits, nil, nil) // the pod waits for its second volume
	}
	s.at = s.at.Add(time.Minute)
	if s.decideAt(t, "n1"); !s.granted("after") {
		t.Error("the volume is kept for more than a minute")
	}
	s.w.Apply(ledger.TicketGone{ID: ticket("after", "", "").ID})
	s.w.Apply(aged(ticket("next", "n1", ledger.TypeBackup, "b"), 6))
	if s.decideAt(t, "n1"); s.granted("next") {
		t.Error("nothing is kept for the pod any more")
	}
	s.w.Apply(ticket("first", "n1", ledger.TypeRestore, "b"))
	if s.decideAt(t, "n1"); !s.granted("first") {
		t.Error("a ticket that ranks before the pod waits for it")
	}
}

func TestFreedSlotIsKeptForAPod(t *testing.T) {
	waits := pod("waits", "", "c")
	s := newScene(t, waits, pod("one", "n1", "a"), pod("two", "n1", "b"))
	s.w.Put("d")
	s.w.Put("e")
	s.refused(t, waits, "n1")
	s.w.Apply(aged(ticket("here", "n1", ledger.TypeBackup, "d"), 5))
	s.w.Apply(aged(ticket("there", "n2", ledger.TypeBackup, "e"), 5))
	s.w.Apply(ledger.PodGone{UID: "uid-one"})
	if s.decideAt(t, "n1", "n2"); s.granted("here") || !s.granted("there") {
		t.Errorf("granted here: %t, at another node: %t", s.granted("here"), s.granted("there"))
	}
	if !s.config.Arbiter.Fit(s.w.Snapshot(), rules.PodRequest(s.w.Snapshot(), &waits), "n1", s.at).Allowed() {
		t.Error("the pod does not fit")
	}
	s.at = s.at.Add(keepFor)
	if s.decideAt(t, "n1"); !s.granted("here") {
		t.Error("the slot is kept for more than a minute")
	}
}

func TestReservedPodIsKeptNothing(t *testing.T) {
	waits := pod("waits", "", "a")
	s := newScene(t, waits, pod("holds", "n1", "a"), aged(ticket("after", "n2", ledger.TypeBackup, "a"), 5))
	s.refused(t, waits, "n2")
	if n := len(s.config.Waits.line(s.w.Snapshot(), s.at)); n != 1 {
		t.Fatalf("%d pods are in line", n)
	}
	s.w.Ledger.Reserve(s.at, waits, "n1")
	if n := len(s.config.Waits.line(s.w.Snapshot(), s.at)); n != 0 {
		t.Errorf("%d pods are in line", n)
	}
	s.w.Ledger.Unreserve(s.at, waits.UID)
	if n := len(s.config.Waits.line(s.w.Snapshot(), s.at)); n != 1 {
		t.Errorf("%d pods are in line again", n)
	}
}

func TestTicketsBeforeAPodAreServedFirst(t *testing.T) {
	for name, test := range map[string]struct {
		ticket ledger.Ticket
		want   bool
	}{
		"the volume at another node": {ticket("m", "n2", ledger.TypeRestore, "a"), true},
		"a slot at the node":         {ticket("m", "n1", ledger.TypeRestore, "c"), true},
		"it ranks after":             {aged(ticket("m", "n2", ledger.TypeBackup, "a"), 5), false},
		"older, of a pod's rank":     {aged(ticket("m", "n2", ledger.TypeManual, "a"), 1), true},
		"younger, of a pod's rank":   {aged(ticket("m", "n2", ledger.TypeManual, "a"), 3), false},
		"another volume elsewhere":   {ticket("m", "n2", ledger.TypeRestore, "c"), false},
	} {
		told := test.ticket
		told.Reason = string(rules.HeldElsewhere)
		p := pod("p", "", "a")
		p.Created = 2
		s := newScene(t, p, pod("one", "n1", "b"), told)
		if placed := s.reserve(t, p, "n1"); placed == test.want {
			t.Errorf("%s: the pod gets the node: %t", name, placed)
		}
		if got := s.granted("m"); got != test.want {
			t.Errorf("%s: granted %t", name, got)
		}
	}
}

// No pod after the waiting ticket gets the volume before it.
func TestKeptIsKeptFromLaterPods(t *testing.T) {
	for name, test := range map[string]struct {
		waits, between string // claims
		last           []string
		want           bool
	}{
		"the kept volume":               {"a", "a", []string{"a"}, false},
		"it and another one":            {"a", "a", []string{"c", "a"}, false},
		"another volume":                {"a", "a", []string{"c"}, true},
		"no ticket asks for the volume": {"a", "c", []string{"a"}, true}, // among pods kube-scheduler's order decides
	} {
		first, last := pod("first", "", test.waits, "b"), pod("last", "", test.last...)
		first.Created, last.Created = 1, 3
		between := aged(ticket("between", "n2", ledger.TypeManual, test.between), 2)
		between.Reason = string(rules.HeldElsewhere)
		s := newScene(t, first, last, pod("had", "n1", "a", "c"), pod("holds", "n1", "b"), between,
			ledger.NodeDrivers{Node: "n1", Version: "2", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 3}}})
		s.refused(t, first, "n2")
		s.w.Apply(ledger.PodGone{UID: "uid-had"}) // what the first pod waits for is free but for b
		if placed := s.reserve(t, last, "n1"); placed != test.want {
			t.Errorf("%s: the last pod gets the node: %t", name, placed)
		}
		if test.want {
			continue
		}
		s.at = s.at.Add(keepFor)
		if placed := s.reserve(t, last, "n1"); placed || !s.granted("between") {
			t.Errorf("%s: after a minute the last pod gets the node: %t; the ticket is granted: %t", name, placed, s.granted("between"))
		}
	}
}

func TestKeptSlotIsKeptFromLaterPods(t *testing.T) {
	first, last := pod("first", "", "c"), pod("last", "", "e")
	first.Created, last.Created = 1, 3
	between := aged(ticket("between", "n1", ledger.TypeManual, "d"), 2)
	s := newScene(t, first, last, pod("one", "n1", "a"), pod("two", "n1", "b"))
	for _, claim := range []string{"d", "e"} {
		s.w.Put(claim)
	}
	s.w.Apply(between)
	s.refused(t, first, "n1")
	s.decideAt(t, "n1")
	s.w.Apply(ledger.PodGone{UID: "uid-one"})
	if s.reserve(t, last, "n1") || s.granted("between") {
		t.Errorf("the last pod or the ticket (%t) has the slot of the first pod", s.granted("between"))
	}
	if !s.reserve(t, first, "n1") {
		t.Error("the first pod does not get the slot")
	}
}

// The ticket ranks before and keeps the volume detached, whether it was told or not.
func TestLiveMigrationWaitsForADetach(t *testing.T) {
	for _, told := range []ledger.Code{"", rules.HeldElsewhere} {
		grow := ticket("grow", string(ledger.Detached), ledger.TypeManual, "a")
		grow.Reason = string(told)
		s := newScene(t, ledger.Policy{Name: "p", Version: "1", Driver: driver, LiveMigration: true}, pod("vm", "n1", "a"), grow,
			ticket("move", "n2", ledger.TypeLiveMigration, "a"), ticket("again", "n2", ledger.TypeLiveMigration, "a"))
		s.w.Apply(ledger.PodGone{UID: "uid-vm"})
		if s.decideAt(t, "n2"); s.granted("move") || s.granted("again") {
			t.Errorf("told %q: the migration is granted before the ticket that ranks before it", told)
		}
		if s.decideAt(t, ledger.Detached); !s.granted("grow") {
			t.Errorf("told %q: the ticket that keeps the volume detached is not granted", told)
		}
		s.w.Apply(ledger.TicketGone{ID: grow.ID})
		s.w.Apply(pod("vm2", "n1", "a"))
		s.w.Apply(ticket("check", string(ledger.Detached), ledger.TypeManual, "a"))
		if s.decideAt(t, "n2"); !s.granted("move") || !s.granted("again") {
			t.Errorf("told %q: a ticket that has to wait for a pod keeps a migration waiting", told)
		}
	}
}

func TestFenceByTimeWakesTheLine(t *testing.T) {
	after := time.Minute
	silent := ledger.NodeState{Name: "n1", UID: "n", Version: "2", Ready: ledger.ReadyUnknown, Managed: true, Reporting: true}
	s := newScene(t, pod("lost", "n1", "a"), ticket("m", "n2", ledger.TypeManual, "a"), ledger.Complete{},
		ledger.Policy{Name: "p", Version: "1", Driver: driver, AfterUnreachable: &after}, silent)
	s.Lapse()
	for range s.rest.Len() {
		t.Error("it is woken before the time is over")
	}
	s.at = s.at.Add(24 * time.Hour)
	if s.Lapse(); s.rest.Len() != 1 {
		t.Errorf("%d tickets are woken", s.rest.Len())
	}
}

// The number of waiting pods has no limit.
func TestEachWaitingPodAsks(t *testing.T) {
	const pods = 1000
	s := newScene(t)
	for i := range pods {
		name := fmt.Sprint("other", i)
		p := pod(name, "", "a")
		s.w.Apply(p)
		s.config.Waits.Note(s.at, p, nil, nil)
	}
	backup, waits := granted(ticket("backup", "n1", ledger.TypeBackup, "b")), pod("waits", "", "b")
	s.w.Apply(backup)
	s.w.Apply(waits)
	s.refused(t, waits, "n2")
	if asked := s.asked("backup"); len(asked) != 1 || asked[0].Who.Name != "waits" {
		t.Errorf("after %d other pods the ticket is asked for %+v", pods, asked)
	}
	if n := s.config.Waits.Len(); n != pods+1 {
		t.Errorf("%d pods wait", n)
	}
}
