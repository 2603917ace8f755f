// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// The Node's state does not count. Silence without evidence is unexplained.
func TestUnreachable(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
	is := func(change func(*NodeState)) NodeState {
		s := NodeState{Name: "n", UID: "u", Version: "2", ReadySince: 2}
		change(&s)
		return s
	}
	unknown := is(func(*NodeState) {})
	notReady := is(func(s *NodeState) { s.Ready = ReadyFalse })
	fenced := FencedCondition{Type: "fenced.moorage.dev/x", Since: 1}
	lease := func(renewed int64) NodeLease { return NodeLease{"n", renewed} }
	for name, test := range map[string]struct {
		events []Event // one every 10 s
		want   counted
	}{
		"Ready":                            {nil, counted{nodes: 1}},
		"Ready, and out of service":        {[]Event{is(func(s *NodeState) { s.Ready, s.OutOfService = ReadyTrue, true })}, counted{nodes: 1}},
		"Unknown":                          {[]Event{unknown}, counted{nodes: 1, unreachable: 1}},
		"Unknown, its Lease read once":     {[]Event{unknown, lease(1)}, counted{nodes: 1, unreachable: 1}},
		"Unknown, and it renews its Lease": {[]Event{unknown, lease(1), lease(2)}, counted{nodes: 1}},
		"Unknown, renewed 30 s ago":        {[]Event{unknown, lease(1), lease(2), lease(2), lease(2), lease(2)}, counted{nodes: 1}},
		"Unknown, renewed 40 s ago":        {[]Event{unknown, lease(1), lease(2), lease(2), lease(2), lease(2), lease(2)}, counted{nodes: 1, unreachable: 1}},
		"not Ready":                        {[]Event{notReady}, counted{nodes: 1}},
		"not Ready, its Lease read":        {[]Event{notReady, lease(1), lease(1), lease(1), lease(1)}, counted{nodes: 1}},
		"not Ready, silent for 40 s":       {[]Event{notReady, lease(1), lease(1), lease(1), lease(1), lease(1)}, counted{nodes: 1, unreachable: 1}},
		"not Ready, and Unknown then":      {[]Event{notReady, is(func(s *NodeState) { s.Version = "3" })}, counted{nodes: 1, unreachable: 1}},
		"Unknown, and not Ready then":      {[]Event{unknown, is(func(s *NodeState) { s.Version, s.Ready = "3", ReadyFalse })}, counted{nodes: 1}},
		"Unknown, and out of service":      {[]Event{is(func(s *NodeState) { s.OutOfService = true })}, counted{}},
		"Unknown, and shut down":           {[]Event{is(func(s *NodeState) { s.Shutdown = true })}, counted{}},
		"Unknown, and fenced":              {[]Event{is(func(s *NodeState) { s.Fenced = []FencedCondition{fenced} })}, counted{}},
		"Unknown, and fenced before":       {[]Event{is(func(s *NodeState) { s.Fenced = []FencedCondition{fenced} }), lease(1), lease(2), lease(2), lease(2), lease(2), lease(2)}, counted{nodes: 1, unreachable: 1}},
		"in a zone": {[]Event{is(func(s *NodeState) {
			s.Labels = map[string]string{"topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "r"}
		})}, counted{Zone{Region: "r", Name: "a"}, 1, 1}},
		"deleted, and nothing is there":     {[]Event{NodeGone{"n"}}, counted{}},
		"deleted, and a volume is there":    {[]Event{is(func(s *NodeState) { s.InUse = []VolumeID{{"d", "h"}} }), NodeGone{"n"}}, counted{nodes: 1, unreachable: 1}},
		"deleted, out of service before":    {[]Event{is(func(s *NodeState) { s.OutOfService, s.Ready, s.InUse = true, ReadyFalse, []VolumeID{{"d", "h"}} }), NodeGone{"n"}}, counted{nodes: 1, unreachable: 1}},
		"deleted, and its volume goes then": {[]Event{Attachment{Name: "a", UID: "a", Version: "1", Driver: "d", Node: "n", Inline: VolumeID{"d", "h"}}, NodeGone{"n"}, AttachmentGone{"a"}}, counted{}},
	} {
		l := New()
		l.Apply(at(0), NodeState{Name: "n", UID: "u", Version: "1", Ready: ReadyTrue, ReadySince: 1})
		for i, e := range test.events {
			l.Apply(at(10*(i+1)), e)
		}
		var got counted
		if n := l.Snapshot().Node("n"); n != nil {
			got = n.counted
		}
		if got != test.want {
			t.Errorf("%s: counts as %+v, want %+v", name, got, test.want)
		}
		for z := range l.Snapshot().Zones() {
			if !z.Whole && z.Zone != test.want.zone || z.Nodes != test.want.nodes || z.Unreachable != test.want.unreachable {
				t.Errorf("%s: the zone has %+v", name, *z)
			}
		}
	}
}

// Shares need more than two nodes, and the whole cluster counts too.
func TestTooMany(t *testing.T) {
	zone, whole := Zone{Name: "a"}, Zone{Whole: true}
	for name, test := range map[string]struct {
		zone               Zone
		unreachable, nodes int32
		want               bool
	}{
		"two of two":                         {zone, 2, 2, false},
		"three of three":                     {zone, 3, 3, true},
		"three of five":                      {zone, 3, 5, true},
		"three of six":                       {zone, 3, 6, false},
		"eleven of twenty":                   {zone, 11, 20, false},
		"twelve of twenty":                   {zone, 12, 20, true},
		"of the cluster":                     {whole, 12, 20, true},
		"more nodes than are counted in int": {zone, 1 << 30, 1<<31 - 1, false},
	} {
		z := &ZoneNodes{Zone: test.zone, Nodes: test.nodes, Unreachable: test.unreachable}
		if got := z.TooMany(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if (*ZoneNodes)(nil).TooMany() {
		t.Error("too many of no nodes are unreachable")
	}
}

func storm() *Ledger {
	l := New()
	for i := range 10 {
		l.Apply(start, stormNode(i, "1", ReadyTrue))
	}
	l.Apply(start, Complete{})
	return l
}

func stormNode(i int, version string, ready Readiness) NodeState {
	name := fmt.Sprintf("n%d", i)
	return NodeState{
		Name: NodeName(name), UID: name, Version: version, Ready: ready, Labels: map[string]string{"topology.kubernetes.io/zone": "ab"[i%2 : i%2+1]},
		InUse: []VolumeID{{"d", name}}, Reporting: true,
	}
}

// The limit's crossing touches, not every node.
func TestTooManyUnreachable(t *testing.T) {
	of := func(touched Touched, i int) bool {
		return slices.Contains(touched.Volumes, VolumeID{"d", fmt.Sprintf("n%d", i)}) && slices.Contains(touched.Nodes, NodeName(fmt.Sprintf("n%d", i)))
	}
	l := storm()
	s := func() Snapshot { return l.Snapshot() }
	for _, i := range []int{0, 2, 4, 6} {
		now := start.Add(time.Duration(i) * time.Second)
		if touched := l.Apply(now, stormNode(i, "2", ReadyUnknown)); i > 0 && of(touched, 0) != (i == 4) {
			t.Errorf("that n%d is unreachable touches n0: %t", i, i != 4)
		}
		zone, on := s().TooMany(s().Node("n0"))
		if on != (i >= 4) || on && zone.Name != "a" {
			t.Errorf("with n%d too many are unreachable: %t, in %+v", i, on, zone)
		}
	}
	if _, on := s().TooMany(s().Node("n1")); on {
		t.Error("too many are unreachable in the other zone")
	}
	back := start.Add(time.Minute)
	l.Apply(back, stormNode(0, "3", ReadyTrue)) // three of five are too many still
	if touched := l.Apply(back.Add(time.Second), stormNode(2, "3", ReadyTrue)); !of(touched, 4) || of(touched, 1) {
		t.Errorf("that two come back touches %v", touched.Volumes)
	}
	if lifted := s().Lifted(s().Node("n4")); !lifted.Equal(back.Add(time.Second)) || !s().Lifted(s().Node("n1")).IsZero() {
		t.Errorf("it is over since %v", lifted)
	}
}

// Zones of one or two nodes show nothing.
func TestTooManyOfTheCluster(t *testing.T) {
	l := New()
	for i := range 5 {
		n := stormNode(i, "1", ReadyUnknown)
		n.Labels = map[string]string{"topology.kubernetes.io/zone": n.UID}
		if i > 2 {
			n.Ready = ReadyTrue
		}
		l.Apply(start, n)
	}
	s := l.Snapshot()
	if zone, on := s.TooMany(s.Node("n0")); !on || !zone.Whole {
		t.Errorf("three of five in zones of their own: %t, in %+v", on, zone)
	}
	l.Apply(start.Add(time.Minute), NodeState{Name: "n0", UID: "n0", Version: "2", Ready: ReadyTrue})
	s = l.Snapshot()
	if _, on := s.TooMany(s.Node("n1")); on {
		t.Error("two are too many")
	}
	if at := s.Lifted(s.Node("n1")); !at.Equal(start.Add(time.Minute)) {
		t.Errorf("it is over since %v", at)
	}
}

// A new process has not seen the end of an outage.
func TestTooManyBeforeAllIsSeen(t *testing.T) {
	l := New()
	for i := range 10 {
		ready := ReadyUnknown
		if i > 4 {
			ready = ReadyTrue
		}
		n := stormNode(i, "1", ready)
		n.Labels = nil
		l.Apply(start, n)
	}
	l.Apply(start, Complete{})
	s := l.Snapshot()
	if at := s.Lifted(s.Node("n0")); !at.IsZero() {
		t.Errorf("too many were unreachable until %v", at)
	}
}
