// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/alloctest"
)

func waitingEverywhere(nodes, volumes int, told ledger.Code) (ledger.Snapshot, *ledger.Pod) {
	l, now := ledger.New(), time.Unix(1000, 0)
	claim := func(i int) string { return fmt.Sprintf("c%03d", i) }
	var all []ledger.TicketVolume
	for i := range volumes {
		name := claim(i)
		key := ledger.ClaimKey{Namespace: namespace, Name: name}
		l.Apply(now, ledger.PersistentVolume{Name: name, UID: name, Version: "1", Volume: ledger.VolumeID{Driver: "disk", Handle: name}, Access: ledger.AccessNode, Claim: key})
		l.Apply(now, ledger.Claim{Key: key, UID: name, Version: "1", PersistentVolume: name, Bound: true, Access: ledger.AccessNode})
		all = append(all, ledger.TicketVolume{Claim: name})
	}
	for i := range nodes {
		n := nthNode(i)
		l.Apply(now, ledger.NodeState{Name: n, UID: string(n), Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
		l.Apply(now, ledger.NodeDrivers{Node: n, Version: "1", Drivers: []ledger.DriverOnNode{{Name: "disk", Limit: 2 * int32(volumes)}}})
	}
	l.Apply(now, ledger.Pod{UID: "has", Version: "1", Namespace: namespace, Name: "has", Node: nthNode(0), Volumes: []ledger.PodVolume{{Name: "v", Claim: claim(volumes - 1)}}})
	for i := 1; i < nodes; i++ {
		name := fmt.Sprintf("t%04d", i)
		l.Apply(now, ledger.Ticket{ID: ledger.TicketID{Namespace: namespace, Name: name}, UID: name, Version: "1", Type: ledger.TypeBackup,
			Node: nthNode(i), Volumes: all, Created: int64(i), Reason: string(told)})
	}
	pod := &ledger.Pod{UID: "asks", Version: "1", Namespace: namespace, Name: "asks", Volumes: []ledger.PodVolume{{Name: "v", Claim: claim(0)}}}
	l.Apply(now, *pod)
	return l.Snapshot(), pod
}

func nthNode(i int) ledger.NodeName { return ledger.NodeName(fmt.Sprintf("n%04d", i)) }

func lastOf(s ledger.Snapshot, nodes int) *ledger.Ticket {
	return s.Ticket(ledger.TicketID{Namespace: namespace, Name: fmt.Sprintf("t%04d", nodes-1)})
}

// The cost must not depend on other tickets' volumes: a tenant could occupy scheduler and controller for
// minutes.
func TestWaitingTicketsAreNotLookedThrough(t *testing.T) {
	const nodes, few, many = 400, 2, 40
	for _, told := range []ledger.Code{"", rules.NotGranted, rules.HeldElsewhere} {
		fit, grant := map[int]uint64{}, map[int]uint64{}
		for _, volumes := range []int{few, many} {
			s, pod := waitingEverywhere(nodes, volumes, told)
			r := rules.PodRequest(s, pod)
			fit[volumes] = alloctest.Bytes(func() {
				if v := (rules.Arbiter{}).Fit(s, r, nthNode(1), time.Unix(2000, 0)); !v.Allowed() {
					t.Errorf("told %q: the pod fits: %t", told, v.Allowed())
				}
			})
			grant[volumes] = alloctest.Bytes(func() {
				if v := (rules.Arbiter{}).Grant(s, lastOf(s, nodes), time.Unix(2000, 0)); v.First().Code != rules.HeldElsewhere {
					t.Errorf("told %q: the ticket is told %s", told, v.First().Code)
				}
			})
		}
		if fit[many] > fit[few]+16<<10 {
			t.Errorf("told %q: a look at a node takes %d bytes where each ticket asks for %d volumes, and %d where it asks for %d", told, fit[few], few, fit[many], many)
		}
		if most := 2 * many / few * (grant[few] + 4<<10); grant[many] > most {
			t.Errorf("told %q: a decision takes %d bytes for %d volumes, and %d for %d; want %d at most", told, grant[few], few, grant[many], many, most)
		}
	}
}

func crowded(volumes, pods, tickets int, held bool) ledger.Snapshot {
	l, now := ledger.New(), time.Unix(1000, 0)
	claim := func(namespace, name string) {
		key := ledger.ClaimKey{Namespace: namespace, Name: name}
		l.Apply(now, ledger.PersistentVolume{Name: name, UID: name, Version: "1", Volume: ledger.VolumeID{Driver: "disk", Handle: name}, Access: ledger.AccessNode, Claim: key})
		l.Apply(now, ledger.Claim{Key: key, UID: name, Version: "1", PersistentVolume: name, Bound: true, Access: ledger.AccessNode})
	}
	var asked []ledger.TicketVolume
	var used []ledger.PodVolume
	for i := range volumes {
		name := fmt.Sprintf("c%03d", i)
		claim("crowd", name)
		asked, used = append(asked, ledger.TicketVolume{Claim: name}), append(used, ledger.PodVolume{Name: name, Claim: name})
		if held {
			l.Apply(now, ledger.HoldSeen{Volume: ledger.VolumeID{Driver: "disk", Handle: name}, Hold: ledger.Hold{Version: "1", Transitions: 1, State: ledger.HoldHeld, Node: nthNode(pods)}})
		}
	}
	for i := range pods + 1 {
		n := nthNode(i)
		l.Apply(now, ledger.NodeState{Name: n, UID: string(n), Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
		l.Apply(now, ledger.NodeDrivers{Node: n, Version: "1", Drivers: []ledger.DriverOnNode{{Name: "disk", Limit: 2000}}})
		if i > 0 {
			l.Apply(now, ledger.Pod{UID: string(n), Version: "1", Namespace: "crowd", Name: string(n), Node: n, Volumes: used})
		}
	}
	for i := range tickets {
		name := fmt.Sprintf("t%04d", i)
		l.Apply(now, ledger.Ticket{ID: ledger.TicketID{Namespace: "crowd", Name: name}, UID: name, Version: "1", Type: ledger.TypeManual, Node: nthNode(0), Volumes: asked, Created: int64(i)})
	}
	claim(namespace, "quiet")
	l.Apply(now, ledger.Pod{UID: "quiet", Version: "1", Namespace: namespace, Name: "quiet", Volumes: []ledger.PodVolume{{Name: "v", Claim: "quiet"}}})
	l.Apply(now, ledger.Ticket{ID: ledger.TicketID{Namespace: namespace, Name: "quiet"}, UID: "quiet", Version: "1", Type: ledger.TypeManual,
		Node: nthNode(0), Volumes: []ledger.TicketVolume{{Claim: "quiet"}}, Created: 1 << 40})
	return l.Snapshot()
}

// All other tenants' tickets at the node wait for the round.
func TestOneTenantDoesNotSlowARound(t *testing.T) {
	const most = 128 << 10
	for _, held := range []bool{false, true} {
		for _, size := range []struct{ volumes, pods, tickets int }{{1, 10, 10}, {32, 100, 256}, {4, 500, 256}} {
			s, granted := crowded(size.volumes, size.pods, size.tickets, held), false
			q := (rules.Arbiter{}).Queue(s, nthNode(0), time.Unix(2000, 0))
			for _, k := range q.Tickets() {
				if v := q.Grant(k); k.ID.Name == "quiet" {
					granted = v.Allowed()
				}
			}
			if q.Looks() > most || !granted {
				t.Errorf("%d volumes, held: %t, %d pods, %d tickets: the round looks at %d users, want %d at most; another tenant's ticket is granted: %t",
					size.volumes, held, size.pods, size.tickets, q.Looks(), most, granted)
			}
		}
	}
}

func TestWhoIsLeftOutHasATurn(t *testing.T) {
	const tickets = 20
	s := crowded(32, 200, tickets, false)
	last := s.Ticket(ledger.TicketID{Namespace: "crowd", Name: fmt.Sprintf("t%04d", tickets-1)})
	if v := (rules.Arbiter{}).Grant(s, last, time.Unix(2000, 0)); v.First().Code != rules.TooManyTickets {
		t.Errorf("behind %d others: %v", tickets-1, v.First().Code)
	}
	if v := (rules.Arbiter{}).Grant(crowded(32, 200, 1, false), last, time.Unix(2000, 0)); v.First().Code != rules.HeldElsewhere {
		t.Errorf("behind one other: %v", v.First().Code)
	}
}

func BenchmarkWaiting(b *testing.B) {
	for _, size := range []struct{ nodes, volumes int }{{100, 10}, {400, 40}} {
		s, pod := waitingEverywhere(size.nodes, size.volumes, rules.HeldElsewhere)
		r, k := rules.PodRequest(s, pod), lastOf(s, size.nodes)
		b.Run(fmt.Sprintf("Fit/nodes=%d/volumes=%d", size.nodes, size.volumes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rules.Arbiter{}.Fit(s, r, nthNode(1), time.Unix(2000, 0))
			}
		})
		b.Run(fmt.Sprintf("Grant/nodes=%d/volumes=%d", size.nodes, size.volumes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rules.Arbiter{}.Grant(s, k, time.Unix(2000, 0))
			}
		})
	}
}
