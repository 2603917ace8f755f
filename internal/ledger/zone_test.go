// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// A node is unreachable for as long as its kubelet is not heard, regardless of the Node's state; its
// silence is unexplained without evidence.
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

// A share counts for more than two nodes, and for the whole cluster as well; a number is a zone's.
func TestExceeds(t *testing.T) {
	zone, whole := Zone{Name: "a"}, Zone{Whole: true}
	for name, test := range map[string]struct {
		zone               Zone
		unreachable, nodes int32
		most               MaxUnreachable
		want               bool
	}{
		"two of two":                         {zone, 2, 2, DefaultMaxUnreachable(), false},
		"three of three":                     {zone, 3, 3, DefaultMaxUnreachable(), true},
		"three of five":                      {zone, 3, 5, DefaultMaxUnreachable(), true},
		"three of six":                       {zone, 3, 6, DefaultMaxUnreachable(), false},
		"eleven of twenty":                   {zone, 11, 20, DefaultMaxUnreachable(), false},
		"twelve of twenty":                   {zone, 12, 20, DefaultMaxUnreachable(), true},
		"of the cluster":                     {whole, 12, 20, DefaultMaxUnreachable(), true},
		"all, of all that are permitted":     {zone, 20, 20, MaxUnreachable{Percent: 100}, false},
		"two where no share is permitted":    {zone, 2, 20, MaxUnreachable{}, false},
		"three where no share is permitted":  {zone, 3, 20, MaxUnreachable{}, true},
		"as many as permitted":               {zone, 1, 20, MaxUnreachable{Percent: 100, Nodes: 1}, false},
		"one more than permitted":            {zone, 2, 20, MaxUnreachable{Percent: 100, Nodes: 1}, true},
		"one more, of the cluster":           {whole, 2, 20, MaxUnreachable{Percent: 100, Nodes: 1}, false},
		"a share of more than a number is":   {zone, 4, 5, MaxUnreachable{Percent: 55, Nodes: 10}, true},
		"more nodes than are counted in int": {zone, 1 << 30, 1<<31 - 1, DefaultMaxUnreachable(), false},
	} {
		z := &ZoneNodes{Zone: test.zone, Nodes: test.nodes, Unreachable: test.unreachable}
		if got := z.Exceeds(test.most); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if (*ZoneNodes)(nil).Exceeds(MaxUnreachable{}) {
		t.Error("too many of no nodes are unreachable")
	}
}

// Two bounds count both.
func TestStricter(t *testing.T) {
	share, few, many := MaxUnreachable{Percent: 55}, MaxUnreachable{Percent: 100, Nodes: 3}, MaxUnreachable{Percent: 100, Nodes: 7}
	for _, test := range []struct{ a, b, want MaxUnreachable }{
		{share, few, MaxUnreachable{55, 3}}, {few, many, few}, {share, share, share}, {share, MaxUnreachable{Percent: 40}, MaxUnreachable{Percent: 40}},
		{MaxUnreachable{55, 3}, many, MaxUnreachable{55, 3}},
	} {
		if got := test.a.Stricter(test.b); got != test.want {
			t.Errorf("%+v and %+v: %+v", test.a, test.b, got)
		}
		if got := test.b.Stricter(test.a); got != test.want {
			t.Errorf("%+v and %+v: %+v", test.b, test.a, got)
		}
	}
}

// storm is a cluster of ten nodes with a volume each, the even nodes in zone a.
func storm(policies ...Policy) *Ledger {
	l := New()
	for _, p := range policies {
		l.Apply(start, p)
	}
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

// Volumes at unreachable nodes are touched when there are too many such nodes, and when there are no
// longer, and not with every node that comes or goes; nor if no policy has a time.
func TestTooManyUnreachable(t *testing.T) {
	timed := Policy{Name: "p", Version: "1", Driver: "d", AfterUnreachable: new(time.Duration)}
	of := func(touched Touched, i int) bool {
		return slices.Contains(touched.Volumes, VolumeID{"d", fmt.Sprintf("n%d", i)}) && slices.Contains(touched.Nodes, NodeName(fmt.Sprintf("n%d", i)))
	}
	for name, test := range map[string]struct {
		policies []Policy
		wakes    bool
	}{
		"no policy":      {nil, false},
		"never":          {[]Policy{{Name: "p", Version: "1", Driver: "d", AfterUnreachable: func() *time.Duration { d := time.Duration(-1); return &d }()}}, false},
		"by default":     {[]Policy{timed}, true},
		"another policy": {[]Policy{{Name: "o", Version: "1", Driver: "o", MaxUnreachable: &MaxUnreachable{Percent: 100}}, timed}, true},
	} {
		l := storm(test.policies...)
		s := func() Snapshot { return l.Snapshot() }
		for i, want := range []bool{0: false, 2: false, 4: test.wakes, 6: false} {
			if i%2 == 1 {
				continue
			}
			now := start.Add(time.Duration(i) * time.Second)
			if touched := l.Apply(now, stormNode(i, "2", ReadyUnknown)); i > 0 && of(touched, 0) != want {
				t.Errorf("%s: that n%d is unreachable touches n0: %t", name, i, !want)
			}
			zone, on := s().Exceeded(s().Node("n0"), DefaultMaxUnreachable())
			if on != (i >= 4) || on && zone.Name != "a" {
				t.Errorf("%s: with n%d too many are unreachable: %t, in %+v", name, i, on, zone)
			}
		}
		if _, on := s().Exceeded(s().Node("n1"), DefaultMaxUnreachable()); on {
			t.Errorf("%s: too many are unreachable in the other zone", name)
		}
		back := start.Add(time.Minute)
		l.Apply(back, stormNode(0, "3", ReadyTrue)) // three of five are too many still
		if touched := l.Apply(back.Add(time.Second), stormNode(2, "3", ReadyTrue)); of(touched, 4) != test.wakes || of(touched, 1) {
			t.Errorf("%s: that two come back touches %v", name, touched.Volumes)
		}
		lifted := s().Lifted(s().Node("n4"), DefaultMaxUnreachable())
		if test.wakes != lifted.Equal(back.Add(time.Second)) || !s().Lifted(s().Node("n1"), DefaultMaxUnreachable()).IsZero() {
			t.Errorf("%s: it is over since %v", name, lifted)
		}
		if at := s().Lifted(s().Node("n4"), MaxUnreachable{Percent: 56}); !at.IsZero() {
			t.Errorf("%s: what no policy sets is over since %v", name, at)
		}
	}
}

// Zones of one or two nodes show nothing about a network; the whole cluster does.
func TestTooManyOfTheCluster(t *testing.T) {
	l := New()
	l.Apply(start, Policy{Name: "p", Version: "1", Driver: "d", AfterUnreachable: new(time.Duration)})
	for i := range 5 {
		n := stormNode(i, "1", ReadyUnknown)
		n.Labels = map[string]string{"topology.kubernetes.io/zone": n.UID}
		if i > 2 {
			n.Ready = ReadyTrue
		}
		l.Apply(start, n)
	}
	s := l.Snapshot()
	if zone, on := s.Exceeded(s.Node("n0"), DefaultMaxUnreachable()); !on || !zone.Whole {
		t.Errorf("three of five in zones of their own: %t, in %+v", on, zone)
	}
	l.Apply(start.Add(time.Minute), NodeState{Name: "n0", UID: "n0", Version: "2", Ready: ReadyTrue})
	s = l.Snapshot()
	if _, on := s.Exceeded(s.Node("n1"), DefaultMaxUnreachable()); on {
		t.Error("two are too many")
	}
	if at := s.Lifted(s.Node("n1"), DefaultMaxUnreachable()); !at.Equal(start.Add(time.Minute)) {
		t.Errorf("it is over since %v", at)
	}
}

// A new process that sees the unreachable nodes of a zone first has not seen the end of an outage.
func TestTooManyBeforeAllIsSeen(t *testing.T) {
	l := New()
	l.Apply(start, Policy{Name: "p", Version: "1", Driver: "d", AfterUnreachable: new(time.Duration)})
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
	if at := s.Lifted(s.Node("n0"), DefaultMaxUnreachable()); !at.IsZero() {
		t.Errorf("too many were unreachable until %v", at)
	}
}
