// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/test/proptest"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func sorted(keys []string) []string {
	slices.Sort(keys)
	return keys
}

type bytes struct{ rest []byte }

func (b *bytes) below(n int) int {
	if len(b.rest) == 0 {
		return 0
	}
	x := int(b.rest[0]) % n
	b.rest = b.rest[1:]
	return x
}

func (b *bytes) more() bool { return len(b.rest) > 0 }

func drawBytes(t *rapid.T) *bytes { return &bytes{proptest.Bytes(t, 1000)} }

// The twin computes everything anew after each event; repetitions change nothing.
func TestTwin(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		b := drawBytes(t)
		l, w, s := New(), newTwin(), newStream(b)
		now := start
		var frozen []Snapshot
		var was []string
		for b.more() {
			now = now.Add(time.Second)
			e := s.event()
			t.Logf("%T%+v", e, e)
			l.Apply(now, e)
			w.apply(now, e)
			compare(t, e, w.describe(), describeSnapshot(l.Snapshot()))
			l.Apply(now, e)
			compare(t, e, w.describe(), describeSnapshot(l.Snapshot()))
			if len(b.rest)%16 == 0 {
				snap := l.Snapshot()
				frozen, was = append(frozen, snap), append(was, describeSnapshot(snap))
			}
		}
		for i := range frozen {
			if got := describeSnapshot(frozen[i]); got != was[i] {
				t.Fatalf("a snapshot has changed:\n%s", lineDifference(was[i], got))
			}
		}
	})
}

func compare(t *rapid.T, e Event, want, got string) {
	if want != got {
		t.Fatalf("after %T%+v:\n%s", e, e, lineDifference(want, got))
	}
}

func lineDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	var b strings.Builder
	for _, line := range w {
		if !slices.Contains(g, line) {
			b.WriteString("want " + line + "\n")
		}
	}
	for _, line := range g {
		if !slices.Contains(w, line) {
			b.WriteString("got  " + line + "\n")
		}
	}
	return b.String()
}

// The newest events give the same facts in any order.
func TestOrderAcrossObjects(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		b := drawBytes(t)
		s := newStream(b)
		for b.more() {
			s.event()
		}
		var keys []string
		for key, e := range s.last {
			if a, ok := e.(Attachment); ok && !a.AttachError.IsZero() {
				continue // whether there was room is a matter of order
			}
			keys = append(keys, key)
		}
		one, other := New(), New()
		for _, key := range sorted(keys) {
			one.Apply(start, s.last[key])
		}
		for _, key := range rapid.Permutation(keys).Draw(t, "order") {
			other.Apply(start, s.last[key])
		}
		if x, y := describeSnapshot(one.Snapshot()), describeSnapshot(other.Snapshot()); x != y {
			t.Fatalf("the order matters:\n%s", lineDifference(x, y))
		}
	})
}

func TestTouchedCovers(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		b := drawBytes(t)
		l, s := New(), newStream(b)
		before := map[VolumeID]string{}
		for b.more() {
			e := s.event()
			touched := l.Apply(start, e)
			after := map[VolumeID]string{}
			snap := l.Snapshot()
			for v := range snap.Volumes() {
				after[v.ID] = describeVolume(v)
				for i := range v.OnNodes {
					after[v.ID] += "\n" + open(snap, &v.OnNodes[i]).describe(v.ID)
				}
			}
			for v := range after {
				if after[v] != before[v] && !slices.Contains(touched.Volumes, v) {
					t.Fatalf("%T%+v changed %q and did not name it:\n%s", e, e, v, lineDifference(before[v], after[v]))
				}
			}
			for v := range before {
				if after[v] == "" && !slices.Contains(touched.Volumes, v) {
					t.Fatalf("%T%+v removed %q and did not name it", e, e, v)
				}
			}
			before = after
		}
	})
}

// An event names each changed ticket, and each node with changed facts for tickets.
func TestTouchedNamesNodesAndTickets(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		b := drawBytes(t)
		l, s := New(), newStream(b)
		nodes, tickets := map[NodeName]string{}, map[TicketID]string{}
		for b.more() {
			e := s.event()
			touched := l.Apply(start, e)
			snap := l.Snapshot()
			nodesAfter, ticketsAfter := map[NodeName]string{}, map[TicketID]string{}
			for n := range snap.Nodes() {
				nodesAfter[n.Name] = decidedOn(n)
			}
			for k := range snap.Tickets() {
				ticketsAfter[k.ID] = fmt.Sprint(k.UID, k.Version, k.Node, k.Phase, k.InDoubt, snap.TicketAt(k.ID))
			}
			checkTouched(t, e, nodes, nodesAfter, touched.Nodes)
			checkTouched(t, e, tickets, ticketsAfter, touched.Tickets)
			nodes, tickets = nodesAfter, ticketsAfter
		}
	})
}

func decidedOn(n *Node) string {
	text := fmt.Sprint(n.Exists, n.CSINode, n.Ready, n.OutOfService, n.Managed, n.Draining, n.Reporting, n.BootID, n.RenewedAt, len(n.Tickets))
	for _, d := range n.Drivers {
		text += fmt.Sprint(d.DriverOnNode, d.Registered, d.Exhausted, d.Used)
	}
	return text
}

func checkTouched[K comparable](t *rapid.T, e Event, before, after map[K]string, touched []K) {
	for k, is := range after {
		if is != before[k] && !slices.Contains(touched, k) {
			t.Fatalf("%T%+v changed %v and did not name it:\n%s", e, e, k, lineDifference(before[k], is))
		}
	}
	for k := range before {
		if after[k] == "" && !slices.Contains(touched, k) {
			t.Fatalf("%T%+v removed %v and did not name it", e, e, k)
		}
	}
}

func TestRepetitionTouchesNothing(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		b := drawBytes(t)
		l, s := New(), newStream(b)
		for b.more() {
			e := s.event()
			l.Apply(start, e)
			if _, gone := e.(TicketGone); gone { // of a reservation: its ghost stays
				continue
			}
			again := l.Apply(start, e)
			if again.Own { // a proof: its maker decides again
				continue
			}
			if len(again.Volumes)+len(again.Nodes)+len(again.Tickets)+len(again.Policies) > 0 {
				t.Fatalf("%T%+v touches %+v again", e, e, again)
			}
		}
	})
}

// Each node writes an unchanged status every few seconds.
func TestHeartbeatsTouchNothing(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		b := drawBytes(t)
		l, s := New(), newStream(b)
		for b.more() {
			l.Apply(start, s.event())
		}
		for _, key := range sorted(slices.Collect(maps.Keys(s.last))) {
			n, ok := s.last[key].(NodeState)
			if !ok {
				continue
			}
			n.Version = s.next()
			l.Apply(start, n) // adds the entries that a proof had taken off its lists
			n.Version = s.next()
			if touched := l.Apply(start, n); len(touched.Volumes)+len(touched.Nodes)+len(touched.Tickets) > 0 {
				t.Fatalf("%+v touches %+v", n, touched)
			}
		}
	})
}
