// SPDX-License-Identifier: Apache-2.0

package arbiter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/alloctest"
)

// waitingEverywhere has somebody ask for the same volumes by one ticket at each of so many
// nodes. A pod has the last volume; the tickets were told so, or nobody has answered them
// yet. The pod that is returned asks for the first volume.
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

// lastOf is the ticket that ranks last.
func lastOf(s ledger.Snapshot, nodes int) *ledger.Ticket {
	return s.Ticket(ledger.TicketID{Namespace: namespace, Name: fmt.Sprintf("t%04d", nodes-1)})
}

// What it costs to look at a node for a pod, or to decide on a ticket, does not depend on
// what else those ask for who ask for the same volume: one tenant could keep scheduler and
// controller busy for minutes. Looking at what a ticket asks for allocates.
func TestWaitingTicketsAreNotLookedThrough(t *testing.T) {
	const nodes, few, many = 400, 2, 40
	for _, told := range []ledger.Code{"", arbiter.NotGranted, arbiter.HeldElsewhere} {
		fit, grant := map[int]uint64{}, map[int]uint64{}
		for _, volumes := range []int{few, many} {
			s, pod := waitingEverywhere(nodes, volumes, told)
			r := arbiter.PodRequest(s, pod)
			fit[volumes] = alloctest.Bytes(func() {
				if v := (arbiter.Arbiter{}).Fit(s, r, nthNode(1), time.Unix(2000, 0)); v.Allowed() != (told == arbiter.HeldElsewhere) {
					t.Errorf("told %q: the pod fits: %t", told, v.Allowed())
				}
			})
			grant[volumes] = alloctest.Bytes(func() {
				if v, _ := (arbiter.Arbiter{}).Grant(s, lastOf(s, nodes), time.Unix(2000, 0)); v.First().Code != arbiter.HeldElsewhere {
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

// BenchmarkWaiting asks for one node for a pod, and decides on one ticket, where somebody has
// a ticket for the same volumes wait at each node.
func BenchmarkWaiting(b *testing.B) {
	for _, size := range []struct{ nodes, volumes int }{{100, 10}, {400, 40}} {
		s, pod := waitingEverywhere(size.nodes, size.volumes, arbiter.HeldElsewhere)
		r, k := arbiter.PodRequest(s, pod), lastOf(s, size.nodes)
		b.Run(fmt.Sprintf("Fit/nodes=%d/volumes=%d", size.nodes, size.volumes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				arbiter.Arbiter{}.Fit(s, r, nthNode(1), time.Unix(2000, 0))
			}
		})
		b.Run(fmt.Sprintf("Grant/nodes=%d/volumes=%d", size.nodes, size.volumes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				arbiter.Arbiter{}.Grant(s, k, time.Unix(2000, 0))
			}
		})
	}
}
