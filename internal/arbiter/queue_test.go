// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/proptest"
)

var queueTime = time.Unix(1_700_000_000, 0)

// crowd draws a node at which more users share a few volumes than a queue looks at as
// they come: pods, tickets of every rank, phase and namespace, some of them in doubt.
func crowd(t *rapid.T) ledger.Snapshot {
	l := ledger.New()
	apply := func(e ledger.Event) { l.Apply(queueTime, e) }
	below := func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(t, what) }
	for _, n := range []ledger.NodeName{"n1", "n2"} {
		apply(ledger.NodeState{Name: n, UID: string(n), Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
		apply(ledger.NodeDrivers{Node: n, Version: "1", Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: string(n), Limit: 4}}})
	}
	const volumes = 5
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
		}
		for range 1 + below(2, "volumes") {
			k.Volumes = append(k.Volumes, ledger.TicketVolume{PersistentVolume: fmt.Sprint("v", below(volumes+1, "volume"))})
		}
		apply(k)
		if below(20, "doubt") == 0 {
			apply(ledger.TicketInDoubt{ID: k.ID, UID: k.UID})
		}
	}
	return l.Snapshot()
}

// TestQueueCountsAsOneByOne compares what a queue works out once for all tickets of a
// node with what a look at each of the others says, for each of them.
func TestQueueCountsAsOneByOne(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		s := crowd(t)
		q := Arbiter{}.Queue(s, "n1", queueTime)
		if !slices.IsSortedFunc(q.Tickets(), func(a, b *ledger.Ticket) int { return CompareRequests(ticketAsks(a), ticketAsks(b)) }) {
			t.Fatal("they are not in the order of their rank")
		}
		for _, k := range q.Tickets() {
			w := view{snapshot: s, request: TicketRequest(s, k), node: "n1", now: queueTime, queue: q}
			if got, want := w.tryout(s.Node("n1"), "disk"), freedOneByOne(w); got != want {
				t.Fatalf("ticket %s counts on %d slots, want %d", k.ID, -got, -want)
			}
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
		}
	})
}

// freedOneByOne is the change of the slots that are used, if all tickets that rank after
// the request went.
func freedOneByOne(w view) int32 {
	change := int32(0)
	for v := range w.snapshot.Volumes() {
		p := v.NodeVolume(w.node)
		wanted := slices.ContainsFunc(w.request.Needs, func(n Need) bool { return n.Volume == v.ID })
		if p == nil || wanted || v.ID.Driver != "disk" || p.OccupiesSlot() {
			continue
		}
		if !slices.ContainsFunc(p.Users, func(u ledger.User) bool {
			k := w.snapshot.Ticket(u.Ticket)
			return !w.request.owns(u) && (k.Phase == ledger.TicketGranted || k.InDoubt || CompareRequests(ticketAsks(k), w.request) < 0)
		}) {
			change--
		}
	}
	return change
}

// blockedOneByOne says whether anybody, at another node or for a volume of one pod
// anywhere, keeps an exclusive volume from the request.
func blockedOneByOne(w view, v *ledger.Volume) bool {
	living, others, foreigners := false, false, false
	for i := range v.NodeVolumes {
		p := &v.NodeVolumes[i]
		foreigners = foreigners || p.Node != w.node && foreign(p)
		for _, u := range p.Users {
			k := w.snapshot.Ticket(u.Ticket)
			grants := k.Phase == ledger.TicketGranted
			blocks := !w.request.owns(u) && (grants && !yields(w.snapshot, u, w.request) || !grants && CompareRequests(ticketAsks(k), w.request) < 0 && w.contends(v, u))
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
	return foreigners || others && !living // who merely asks elsewhere waits for those who live here
}

// A queue leaves out what is too many of one namespace, and tells it so; who is left out
// keeps nobody from anything, and pods' tickets do not give way to others.
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
		if kind == ledger.TypePod {
			k.Pod, k.PodName = name, name
			apply(ledger.Pod{UID: name, Version: "1", Namespace: namespace, Name: name, Created: int64(i)})
		}
		apply(k)
		return k.ID
	}
	var flood []ledger.TicketID
	for i := range MaxWaiting + 5 {
		flood = append(flood, request("flood", i, ledger.TypeManual))
	}
	pod, other := request("flood", 9000, ledger.TypePod), request("quiet", 9001, ledger.TypeManual)

	granted := func(id ledger.TicketID) Verdict {
		s := l.Snapshot()
		v, _ := Arbiter{}.Grant(s, s.Ticket(id), queueTime)
		return v
	}
	for _, id := range []ledger.TicketID{flood[0], flood[MaxWaiting-1], pod, other} {
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
	apply(ledger.TicketGone{ID: pod})
	apply(ledger.PodGone{UID: pod.Name})
	if v := granted(last); !v.Allowed() {
		t.Errorf("when others are gone: %v", v.Reasons)
	}
}

// One whom a hold names is decided on however many there are: whoever it is promised
// before waits until it is told.
func TestQueueLeavesOutNobodyWhoIsNamed(t *testing.T) {
	l := ledger.New()
	l.Apply(queueTime, ledger.NodeState{Name: "n1", UID: "n1", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
	for i := range MaxWaiting + 2 {
		name := fmt.Sprintf("t-%04d", i)
		v := ledger.VolumeID{Driver: "disk", Handle: name}
		l.Apply(queueTime, ledger.PersistentVolume{Name: name, UID: name, Version: "1", Volume: v, Access: ledger.AccessNode})
		l.Apply(queueTime, ledger.Ticket{ID: ledger.TicketID{Namespace: "s", Name: name}, UID: name, Version: "1", Type: ledger.TypeManual, Node: "n1", Created: int64(i),
			Volumes: []ledger.TicketVolume{{PersistentVolume: name}}})
		if i == MaxWaiting {
			l.Apply(queueTime, ledger.HoldSeen{Volume: v, Hold: ledger.Hold{Version: "1", Node: "n1", Requesters: []ledger.Requester{{Ticket: true, Namespace: "s", Name: name, UID: name}}}})
		}
	}
	s := l.Snapshot()
	for i, left := range map[int]bool{MaxWaiting: false, MaxWaiting + 1: true} {
		v, _ := Arbiter{}.Grant(s, s.Ticket(ledger.TicketID{Namespace: "s", Name: fmt.Sprintf("t-%04d", i)}), queueTime)
		if got := v.First().Code == TooManyTickets; got != left {
			t.Errorf("ticket %d is left out: %t, want %t", i, got, left)
		}
	}
}

// A pod or ticket may not ask for more volumes than a VolumeTicket lists; volumes that
// need no attachment do not count.
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

// However many keep a volume from somebody, a verdict names a few.
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

// An audit decides on all tickets that wait, and at each node together.
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
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		Arbiter{}.AuditAtRest(s, queueTime)
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	if small, large := cost(100), cost(800); large > 16*small {
		t.Errorf("an audit of 800 tickets takes %.1f times as much as one of 100", large/small)
	}
}
