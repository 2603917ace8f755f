// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/alloctest"
	"github.com/moorage-dev/moorage/test/proptest"
)

var queueTime = time.Unix(1_700_000_000, 0)

func crowd(t *rapid.T) *ledger.Ledger {
	l := ledger.New()
	apply := func(e ledger.Event) { l.Apply(queueTime, e) }
	below := func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(t, what) }
	for _, n := range []ledger.NodeName{"n1", "n2"} {
		apply(ledger.NodeState{Name: n, UID: string(n), Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
		apply(ledger.NodeDrivers{Node: n, Version: "1", Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: string(n), Limit: 4}}})
	}
	const volumes = 8
	for i := range volumes {
		name := fmt.Sprint("v", i)
		access := []ledger.Access{ledger.AccessNode, ledger.AccessPod, ledger.AccessMany}[below(3, "access")]
		apply(ledger.PersistentVolume{Name: name, UID: name, Version: "1", Volume: ledger.VolumeID{Driver: "disk", Handle: name}, Access: access})
		if n := below(6, "attached"); n == 0 {
			apply(ledger.Attachment{Name: "other-" + name, UID: name, Version: "1", Driver: "disk", Node: "n1", PersistentVolume: name, Attached: true})
		}
	}
	types := []ledger.TicketType{ledger.TypeManual, ledger.TypeBackup, ledger.TypeRestore}
	for i := range rapid.IntRange(0, 80).Draw(t, "tickets") {
		k := ledger.Ticket{
			ID: ledger.TicketID{Namespace: fmt.Sprint("ns", below(2, "namespace")), Name: fmt.Sprint("t", i)}, UID: fmt.Sprint("u", i), Version: "1",
			Type: types[below(len(types), "type")], Node: []ledger.NodeName{"n1", "n1", "n1", "n2"}[below(4, "node")], Created: int64(below(4, "created")),
		}
		if below(40, "granted") == 0 {
			k.Phase = ledger.TicketGranted
		} else {
			k.Reason = string([]ledger.Code{"", "", NotGranted, HeldElsewhere, NoFreeSlot, NoFreeSlot, SlotsNotKept}[below(7, "told")])
		}
		for range 1 + below(2, "volumes") {
			k.Volumes = append(k.Volumes, ledger.TicketVolume{PersistentVolume: fmt.Sprint("v", below(volumes+1, "volume"))})
		}
		apply(k)
		if below(20, "doubt") == 0 {
			apply(ledger.TicketInDoubt{ID: k.ID, UID: k.UID})
		}
	}
	return l
}

// Compares the queue's shared results with a check of all other tickets one by one.
func TestQueueCountsAsOneByOne(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		s := crowd(t).Snapshot()
		q := Arbiter{}.Queue(s, "n1", queueTime)
		if !slices.IsSortedFunc(q.Tickets(), func(a, b *ledger.Ticket) int { return CompareRequests(ticketAsks(a), ticketAsks(b)) }) {
			t.Fatal("they are not in the order of their rank")
		}
		given, kept := map[ledger.VolumeID]bool{}, map[ledger.VolumeID]bool{}
		for _, k := range q.Tickets() {
			w := evaluation{snapshot: s, request: TicketRequest(s, k), node: "n1", now: queueTime, queue: q}
			for _, need := range w.request.Needs {
				v := s.Volume(need.Volume)
				if v == nil || !exclusive(v.Access) {
					continue
				}
				reasons, _ := w.others(v, v.Access, need, HeldElsewhere)
				if got, want := len(reasons) > 0, blockedOneByOne(w, v); got != want {
					t.Fatalf("ticket %s is kept from %s: %t (%v), want %t", k.ID, v.ID, got, reasons, want)
				}
			}
			if k.InDoubt {
				continue
			}
			full := fullOneByOne(w, given, kept)
			verdict := q.Grant(k)
			first := verdict.First().Code
			if got := first == NoFreeSlot || first == SlotsNotKept; got && !full || (verdict.Allowed() || first == NotGranted) && full {
				t.Fatalf("ticket %s is told %s (%v), and that there are too few slots is %t", k.ID, first, verdict.Reasons, full)
			}
			for _, need := range w.request.Needs {
				switch {
				case verdict.Allowed() || first == NotGranted:
					given[need.Volume] = true
				case first == NoFreeSlot && k.Type != ledger.TypeBackup:
					kept[need.Volume] = true
				}
			}
		}
	})
}

func fullOneByOne(w evaluation, given, kept map[ledger.VolumeID]bool) bool {
	all, fresh := map[ledger.VolumeID]bool{}, false
	for v := range w.snapshot.Volumes() {
		if p := v.OnNode(w.node); p != nil && (p.OccupiesSlot() || slices.ContainsFunc(p.Users, func(u ledger.User) bool {
			k := w.snapshot.Ticket(u.Ticket)
			return k.Phase == ledger.TicketGranted || k.InDoubt
		})) {
			all[v.ID] = true
		}
	}
	for _, n := range w.request.Needs {
		p := w.snapshot.Volume(n.Volume).OnNode(w.node)
		has := given[n.Volume] || p != nil && (p.OccupiesSlot() || slices.ContainsFunc(p.Users, func(u ledger.User) bool { return w.snapshot.Ticket(u.Ticket).Phase == ledger.TicketGranted }))
		fresh = fresh || !n.Volume.IsZero() && !has
		if !n.Volume.IsZero() {
			all[n.Volume] = true
		}
	}
	maps.Copy(all, given)
	maps.Copy(all, kept)
	delete(all, ledger.VolumeID{})
	return fresh && len(all) > 4
}

// Otherwise two tickets may wait for each other, or alternate.
func TestRankedAfterChangesNothing(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		l := crowd(t)
		s := l.Snapshot()
		tickets := slices.SortedFunc(s.Tickets(), func(a, b *ledger.Ticket) int { return CompareRequests(ticketAsks(a), ticketAsks(b)) })
		if len(tickets) == 0 {
			return
		}
		i := rapid.IntRange(0, len(tickets)-1).Draw(t, "ticket")
		k := tickets[i]
		if k.Phase != ledger.TicketPending || k.InDoubt {
			return
		}
		l = l.Fork()
		for _, other := range tickets[i:] {
			if other.Phase != ledger.TicketPending || other.InDoubt {
				continue
			}
			if other != k && rapid.Bool().Draw(t, "gone") {
				l.Apply(queueTime, ledger.TicketGone{ID: other.ID})
				continue
			}
			told := *other
			told.Version, told.Reason = "2", string(rapid.SampledFrom([]ledger.Code{"", NotGranted, HeldElsewhere, NoFreeSlot, SlotsNotKept}).Draw(t, "told"))
			l.Apply(queueTime, told)
		}
		was := Arbiter{}.Grant(s, k, queueTime)
		now := l.Snapshot()
		is := Arbiter{}.Grant(now, now.Ticket(k.ID), queueTime)
		if gets := func(v Verdict) bool { return v.Allowed() || v.First().Code == NotGranted }; gets(was) != gets(is) || !gets(was) && was.First().Code != is.First().Code {
			t.Fatalf("ticket %s: %v, and %v once those that rank after it are others", k.ID, was.Reasons, is.Reasons)
		}
	})
}

func blockedOneByOne(w evaluation, v *ledger.Volume) bool {
	living, others, foreigners := false, false, false
	for i := range v.OnNodes {
		p := &v.OnNodes[i]
		foreigners = foreigners || p.Node != w.node && foreign(p)
		for _, u := range p.Users {
			k := w.snapshot.Ticket(u.Ticket)
			grants := k.Phase == ledger.TicketGranted
			blocks := !w.request.owns(u) && (grants && !yields(w.snapshot, u, w.request) || !grants && (CompareRequests(ticketAsks(k), w.request) < 0 && contends(k) && p.Node == w.node || mayBeGranted(k)))
			switch {
			case p.Node == w.node && v.Access != ledger.AccessPod:
				living = living || grants && blocks
			case grants:
				foreigners = foreigners || blocks
			default:
				others = others || blocks
			}
		}
	}
	return foreigners || others && !living // a pending ticket elsewhere waits for users that live here
}

// Tickets beyond a namespace's limit are told, and keep nothing.
func TestQueueLeavesOutTooMany(t *testing.T) {
	l := ledger.New()
	apply := func(e ledger.Event) { l.Apply(queueTime, e) }
	apply(ledger.NodeState{Name: "n1", UID: "n1", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
	apply(ledger.NodeDrivers{Node: "n1", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: "n1", Limit: MaxWaiting + 2}}})
	request := func(namespace string, i int, kind ledger.TicketType) ledger.TicketID {
		name := fmt.Sprintf("%s-%04d", namespace, i)
		apply(ledger.PersistentVolume{Name: name, UID: name, Version: "1", Volume: ledger.VolumeID{Driver: "disk", Handle: name}, Access: ledger.AccessMany})
		k := ledger.Ticket{ID: ledger.TicketID{Namespace: namespace, Name: name}, UID: name, Version: "1", Type: kind, Node: "n1", Created: int64(i),
			Volumes: []ledger.TicketVolume{{PersistentVolume: name}}}
		apply(k)
		return k.ID
	}
	var flood []ledger.TicketID
	for i := range MaxWaiting + 5 {
		flood = append(flood, request("flood", i, ledger.TypeManual))
	}
	other := request("quiet", 9001, ledger.TypeManual)

	granted := func(id ledger.TicketID) Verdict {
		s := l.Snapshot()
		v := Arbiter{}.Grant(s, s.Ticket(id), queueTime)
		return v
	}
	for _, id := range []ledger.TicketID{flood[0], flood[MaxWaiting-1], other} {
		if v := granted(id); !v.Allowed() {
			t.Errorf("ticket %s: %v", id, v.Reasons)
		}
	}
	last := flood[MaxWaiting+4]
	if v := granted(last); v.Outcome != Wait || v.First().Code != TooManyTickets || v.First().Node != "n1" {
		t.Errorf("one of too many: %v", v)
	}
	for _, id := range flood[:5] {
		apply(ledger.TicketGone{ID: id})
	}
	if v := granted(last); !v.Allowed() {
		t.Errorf("when others are gone: %v", v.Reasons)
	}
}

// Volumes that need no attachment don't count.
func TestTooManyVolumes(t *testing.T) {
	l := ledger.New()
	l.Apply(queueTime, ledger.NodeState{Name: "n1", UID: "n1", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
	l.Apply(queueTime, ledger.NodeDrivers{Node: "n1", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "disk", Limit: ledger.NoLimit}, {Name: "files", Limit: ledger.NoLimit}}})
	l.Apply(queueTime, ledger.Driver{Name: "files", Version: "1"})
	pod := func(disks, files int) *ledger.Pod {
		p := ledger.Pod{UID: "p", Version: "1", Namespace: "s", Name: "p"}
		for driver, n := range map[string]int{"disk": disks, "files": files} {
			for i := range n {
				p.Volumes = append(p.Volumes, ledger.PodVolume{Name: fmt.Sprint(driver, i), Inline: ledger.VolumeID{Driver: driver, Handle: fmt.Sprint(i)}})
			}
		}
		return &p
	}
	s := l.Snapshot()
	for _, test := range []struct {
		disks, files int
		want         bool
	}{{MaxVolumes, 5, true}, {MaxVolumes + 1, 0, false}} {
		r := PodRequest(s, pod(test.disks, test.files))
		for what, v := range map[string]Verdict{"fits": Arbiter{}.Fit(s, r, "n1", queueTime), "is admissible": Arbiter{}.Admissible(s, r)} {
			if v.Allowed() != test.want || !test.want && (v.First().Code != TooManyVolumes || v.Outcome != Deny) {
				t.Errorf("a pod of %d disks and %d shares %s: %v", test.disks, test.files, what, v)
			}
		}
	}
}

func TestVerdictNamesAFew(t *testing.T) {
	var reasons []Reason
	for i := range 5 * MaxVolumes {
		reasons = append(reasons, Reason{Code: HeldElsewhere, Who: ledger.Requester{UID: fmt.Sprint(i)}})
	}
	v := refuse(append(reasons, Reason{Code: UsedByOtherPod}))
	if len(v.Reasons) != MaxVolumes+1 || v.Reasons[MaxVolumes].Code != UsedByOtherPod {
		t.Errorf("%d reasons, the last is %s", len(v.Reasons), v.Reasons[len(v.Reasons)-1].Code)
	}
}

func TestAuditOfManyTicketsCostsInProportion(t *testing.T) {
	cost := func(n int) float64 {
		l := ledger.New()
		l.Apply(queueTime, ledger.NodeState{Name: "n1", UID: "n1", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
		for i := range n {
			name := fmt.Sprint("t", i)
			l.Apply(queueTime, ledger.Ticket{ID: ledger.TicketID{Namespace: fmt.Sprint("ns", i/100), Name: name}, UID: name, Version: "1", Type: ledger.TypeManual, Node: "n1",
				Volumes: []ledger.TicketVolume{{Claim: "nothing"}}})
		}
		s := l.Snapshot()
		return float64(alloctest.Bytes(func() { Arbiter{}.AuditAtRest(s, queueTime) }))
	}
	if small, large := cost(100), cost(800); large > 16*small {
		t.Errorf("an audit of 800 tickets takes %.1f times as much as one of 100", large/small)
	}
}
