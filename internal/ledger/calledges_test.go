// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"testing"
	"time"
)

var edge, edge2 = VolumeID{"d", "h"}, VolumeID{"d", "i"}

func TestNumbersEnd(t *testing.T) {
	if got := (*Node)(nil).NextNumber(); got != 1 {
		t.Errorf("of a node that nobody knows: %d", got)
	}
	for look, want := range map[int64]int64{0: 1, MaxNumber - 1: MaxNumber, MaxNumber: MaxNumber + 1, MaxNumber + 7: MaxNumber + 1} {
		if got := (&Node{Word: &NodeWord{Look: look}}).NextNumber(); got != want {
			t.Errorf("after %d: %d, want %d", look, got, want)
		}
	}
}

// The outage stays as first read, for its ticket and node; from Complete at the earliest.
func TestEarlierOutage(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(1000+s, 0) }
	id := TicketID{"s", "t"}
	said := func(version, uid string, n NodeName, elapsed time.Duration) Ticket {
		return Ticket{ID: id, UID: uid, Version: version, Type: "Manual", Node: n, NodeGone: Outage{Elapsed: elapsed}}
	}
	for name, test := range map[string]struct {
		then Event
		want Outage
		read int64
	}{
		"as it was read":   {nil, Outage{Elapsed: 5}, 0},
		"it goes on":       {said("2", "u", "n", 7), Outage{Elapsed: 5}, 0},
		"at another node":  {said("2", "u", "m", 7), Outage{Elapsed: 7}, 3},
		"another ticket":   {said("2", "v", "n", 7), Outage{Elapsed: 7}, 3},
		"all is seen then": {Complete{}, Outage{Elapsed: 5}, 3},
	} {
		l := New()
		l.Apply(at(0), said("1", "u", "n", 5))
		if test.then != nil {
			l.Apply(at(3), test.then)
		}
		s := l.Snapshot()
		if got, read := s.EarlierOutage(s.Ticket(id)); got != test.want || !read.Equal(at(test.read)) {
			t.Errorf("%s: %+v, read at %s", name, got, read)
		}
	}
	l := New()
	l.Apply(at(0), Complete{})
	l.Apply(at(2), said("1", "u", "n", 5))
	if _, read := l.Snapshot().EarlierOutage(l.Snapshot().Ticket(id)); !read.Equal(at(2)) {
		t.Errorf("what is read after everything was seen is of %s", read)
	}
}

func TestCutOffIsBelieved(t *testing.T) {
	now := time.Unix(1000, 0)
	begin := func(cut ...string) *Ledger {
		l := spoken(edge)
		l.Apply(now, NodeState{Name: "n", UID: "u", Version: "2", BootID: "b", Ready: ReadyTrue, Reporting: true, CutOff: cut})
		return l
	}
	l := begin("d")
	if !l.Snapshot().BelievesCutOff() {
		t.Error("it is not believed from the beginning")
	}
	if touched := l.Apply(now, CutOffBelieved{Believed: true}); len(touched.Volumes) > 0 || !l.Snapshot().BelievesCutOff() {
		t.Errorf("nothing changes, and %+v", touched)
	}
	for _, believed := range []bool{false, true, false} {
		touched := l.Apply(now, CutOffBelieved{Believed: believed})
		if l.Snapshot().BelievesCutOff() != believed || !slices.Equal(touched.Volumes, []VolumeID{edge}) || !slices.Equal(touched.Nodes, []NodeName{"n"}) {
			t.Errorf("believed %t: %+v", believed, touched)
		}
	}
	if touched := l.Apply(now, CutOffBelieved{}); len(touched.Volumes) > 0 {
		t.Errorf("not believed still, and %+v", touched)
	}
	if touched := begin().Apply(now, CutOffBelieved{}); len(touched.Volumes) > 0 || len(touched.Nodes) > 0 {
		t.Errorf("a node that says nothing is touched: %+v", touched)
	}
}

func TestSeenWithoutAHold(t *testing.T) {
	for name, test := range map[string]struct {
		p    *VolumeOnNode
		want bool
	}{
		"attached": {&VolumeOnNode{first: &attachmentRecord{}}, true}, "sent": {&VolumeOnNode{Sent: true}, true}, "reported": {&VolumeOnNode{Reported: true}, true},
		"in use": {&VolumeOnNode{InUse: true}, true}, "left": {&VolumeOnNode{Left: true}, false}, "held": {&VolumeOnNode{Held: true}, false},
		"wanted": {&VolumeOnNode{Users: []User{{Pod: "p"}}}, false}, "nothing": {nil, false},
	} {
		if got := test.p.seen(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestTypesOfOperations(t *testing.T) {
	for o, want := range map[Operation]TicketType{OperationSnapshot: "Snapshot", OperationClone: "Clone", OperationExpansion: "Expansion", 0: ""} {
		if got := o.TicketType(); got != want || o.String() != string(want) {
			t.Errorf("%d: %q", o, got)
		}
	}
}
