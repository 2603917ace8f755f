// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"strconv"
	"testing"
	"time"
)

// A Lease counts from the first read of its renewal.
func TestNodeLease(t *testing.T) {
	l, at := New(), func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
	if touched := l.Apply(at(0), NodeLease{Node: "n", Renewed: 5}); len(touched.Nodes) > 0 || l.Snapshot().Node("n") != nil {
		t.Errorf("the Lease of a node that is not known touched %v", touched)
	}
	volume := VolumeID{"d", "h"}
	l.Apply(at(1), NodeState{Name: "n", UID: "u", Version: "1", InUse: []VolumeID{volume}})
	for _, step := range []struct {
		now, renewed   int64
		first, touches bool
	}{
		{now: 2, renewed: 900, first: true, touches: true},
		{now: 12, renewed: 900},
		{now: 22, renewed: 700, first: true, touches: true}, // another one, though earlier by its own clock
		{now: 32, renewed: 700},
		{now: 42, renewed: 0, first: true, touches: true},
		{now: 52, renewed: 0},
	} {
		now := at(int(step.now))
		touched := l.Apply(now, NodeLease{Node: "n", Renewed: step.renewed})
		n := l.Snapshot().Node("n")
		if n.Renewed != step.renewed || !n.LeaseRead.Equal(now) || n.RenewedAt.Equal(now) != step.first {
			t.Errorf("at %d s: renewed %d, first read at %v, last at %v", step.now, n.Renewed, n.RenewedAt, n.LeaseRead)
		}
		if (len(touched.Nodes) > 0) != step.touches || slices.Contains(touched.Volumes, volume) != step.touches {
			t.Errorf("at %d s it touched %v", step.now, touched)
		}
	}
}

// A write while the node was Ready does not show a live kubelet now.
func TestLeaseOfTheOutageBefore(t *testing.T) {
	for name, between := range map[string][]NodeState{
		"Ready in between":            {{Ready: ReadyTrue, ReadySince: 2}, {Ready: ReadyUnknown, ReadySince: 3}},
		"Ready while nobody looked":   {{Ready: ReadyUnknown, ReadySince: 3}},
		"another Node of the name":    {{UID: "u2", Ready: ReadyUnknown, ReadySince: 3}},
		"another, and Ready at first": {{UID: "u2", Ready: ReadyTrue, ReadySince: 2}, {UID: "u2", Ready: ReadyUnknown, ReadySince: 3}},
	} {
		l, at := New(), func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
		l.Apply(at(0), NodeState{Name: "n", UID: "u", Version: "1", Ready: ReadyUnknown, ReadySince: 1})
		l.Apply(at(5), NodeLease{Node: "n", Renewed: 5})
		for i, s := range between {
			s.Name, s.Version, s.OutOfService = "n", string(rune('2'+i)), s.Ready != ReadyTrue
			if s.UID == "" {
				s.UID = "u"
			}
			l.Apply(at(100+i), s)
		}
		if n := l.Snapshot().Node("n"); !n.RenewedAt.IsZero() || !n.LeaseRead.IsZero() || n.Renewed != 0 {
			t.Errorf("%s: the Lease counts as read at %v, of %d", name, n.LeaseRead, n.Renewed)
		}
		l.Apply(at(105), NodeLease{Node: "n", Renewed: 95})
		if n := l.Snapshot().Node("n"); !n.Heard.IsZero() || n.Renewed != 95 || !n.RenewedAt.Equal(at(105)) {
			t.Errorf("%s: heard at %v, renewed %d, first read at %v", name, n.Heard, n.Renewed, n.RenewedAt)
		}
		l.Apply(at(110), NodeLease{Node: "n", Renewed: 109})
		if n := l.Snapshot().Node("n"); !n.Heard.Equal(at(110)) {
			t.Errorf("%s: a Lease that moves is heard at %v", name, n.Heard)
		}
	}
}

func TestSilenceBeforeUnknown(t *testing.T) {
	for name, test := range map[string]struct {
		reads []int // seconds after Ready=False
		heard int   // 0: never
	}{
		"the Lease was never read":              {nil, 600},
		"it has stood still all the time":       {[]int{0, 300, 590}, 0},
		"it was read late for the first time":   {[]int{300, 590}, 300},
		"it was read last long before":          {[]int{0, 5}, 600},
		"it was read once, and long before":     {[]int{5}, 600},
		"it was read last 40 seconds before":    {[]int{0, 560}, 0},
		"it was read last 41 seconds before":    {[]int{0, 559}, 600},
		"it was read last before it is Unknown": {[]int{590}, 590},
	} {
		l, at := New(), func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
		l.Apply(at(0), NodeState{Name: "n", UID: "u", Version: "1", Ready: ReadyFalse, ReadySince: 1})
		for _, seconds := range test.reads {
			l.Apply(at(seconds), NodeLease{Node: "n", Renewed: 5})
		}
		l.Apply(at(600), NodeState{Name: "n", UID: "u", Version: "2", Ready: ReadyUnknown, ReadySince: 2})
		n := l.Snapshot().Node("n")
		if want := at(test.heard); test.heard == 0 && !n.Heard.IsZero() || test.heard != 0 && !n.Heard.Equal(want) {
			t.Errorf("%s: heard at %d, want %d", name, n.Heard.Unix()-1000, test.heard)
		}
	}
}

// A taint counts from its first sight on this Node object.
func TestSinceWhenOutOfService(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
	l := New()
	for i, step := range []struct {
		uid     string
		tainted bool
		want    int // -1: it is not
	}{{"u", false, -1}, {"u", true, 1}, {"u", true, 1}, {"u", false, -1}, {"u", true, 4}, {"w", true, 5}, {"w", true, 5}, {"x", false, -1}} {
		l.Apply(at(i), NodeState{Name: "n", UID: step.uid, Version: string(rune('1' + i)), Ready: ReadyUnknown, OutOfService: step.tainted, Shutdown: !step.tainted})
		got := l.Snapshot().Node("n")
		if at, other := got.OutOfServiceAt, got.ShutdownAt; at.IsZero() == other.IsZero() || other.IsZero() != step.tainted {
			t.Errorf("state %d: out of service since %s, off since %s", i, at, other)
		}
		if got := got.OutOfServiceAt; got.IsZero() != (step.want < 0) || step.want >= 0 && !got.Equal(at(step.want)) {
			t.Errorf("state %d: out of service since %s", i, got)
		}
	}
}

// A condition counts from its first sight on this Node object, until its machine may have run again.
func TestSinceWhenFenced(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
	said := func(change func(*NodeState)) Event {
		n := NodeState{Name: "n", UID: "u", BootID: "b", SystemUUID: "m", Fenced: []FencedCondition{{"fenced.moorage.dev/a", 7}}}
		if change != nil {
			change(&n)
		}
		return n
	}
	none := said(func(n *NodeState) { n.Fenced = nil })
	for name, test := range map[string]struct {
		events []Event
		at     int // -1: it has none
		void   bool
	}{
		"seen once":               {[]Event{none, said(nil), said(nil)}, 1, false},
		"seen with the Node":      {[]Event{said(nil)}, 0, false},
		"gone":                    {[]Event{said(nil), none}, -1, false},
		"gone, and back":          {[]Event{said(nil), none, said(nil)}, 2, false},
		"another time":            {[]Event{said(nil), said(func(n *NodeState) { n.Fenced = []FencedCondition{{"fenced.moorage.dev/a", 8}} })}, 1, false},
		"another condition":       {[]Event{said(func(n *NodeState) { n.Fenced = []FencedCondition{{"fenced.moorage.dev/b", 7}} }), said(nil)}, 1, false},
		"one more condition":      {[]Event{said(nil), said(func(n *NodeState) { n.Fenced = append(n.Fenced, FencedCondition{"fenced.moorage.dev/b", 7}) })}, 0, false},
		"set while Ready":         {[]Event{said(func(n *NodeState) { n.Ready = ReadyTrue }), said(nil)}, 0, true},
		"Ready since":             {[]Event{said(nil), said(func(n *NodeState) { n.Ready = ReadyTrue }), said(nil)}, 0, true},
		"set again since":         {[]Event{said(func(n *NodeState) { n.Ready = ReadyTrue }), said(func(n *NodeState) { n.Fenced = []FencedCondition{{"fenced.moorage.dev/a", 8}} })}, 1, false},
		"it says itself":          {[]Event{said(nil), said(func(n *NodeState) { n.Ready = ReadyFalse })}, 0, true},
		"it said so before":       {[]Event{said(func(n *NodeState) { n.Ready = ReadyFalse }), said(nil)}, 0, false},
		"another boot":            {[]Event{said(nil), said(func(n *NodeState) { n.BootID = "c" })}, 0, true},
		"another machine":         {[]Event{said(nil), said(func(n *NodeState) { n.SystemUUID = "o" })}, 0, true},
		"another Node":            {[]Event{said(nil), said(func(n *NodeState) { n.UID = "w" })}, 1, false},
		"the Node is gone":        {[]Event{said(nil), NodeGone{"n"}}, -1, false},
		"made again":              {[]Event{said(nil), NodeGone{"n"}, none}, -1, false},
		"the Lease stands still":  {[]Event{said(nil), NodeLease{"n", 5}, NodeLease{"n", 5}}, 0, false},
		"the Lease moves":         {[]Event{said(nil), NodeLease{"n", 5}, NodeLease{"n", 6}}, 0, true},
		"the Lease moved before":  {[]Event{none, NodeLease{"n", 5}, NodeLease{"n", 6}, said(nil)}, 3, false},
		"after all has been seen": {[]Event{said(nil), Complete{}}, 1, false},
	} {
		l := New()
		for i, e := range test.events {
			if n, is := e.(NodeState); is {
				n.Version = string(rune('1' + i))
				e = n
			}
			l.Apply(at(i), e)
		}
		got, found := l.Snapshot().Node("n").FencedBy("fenced.moorage.dev/a")
		if found != (test.at >= 0) || found && (!got.At.Equal(at(test.at)) || got.Void != test.void) {
			t.Errorf("%s: %v, %t", name, got, found)
		}
	}
}

func TestEndOfFencedConditionVoidsForce(t *testing.T) {
	fenced := []FencedCondition{{"fenced.moorage.dev/a", 7}}
	for name, test := range map[string]struct {
		fenced []FencedCondition
		ready  Readiness
		void   bool
	}{"as it was": {fenced, ReadyUnknown, false}, "gone": {nil, ReadyUnknown, true}, "heard of": {fenced, ReadyFalse, true}} {
		l, v := New(), VolumeID{"d", "h"}
		l.Apply(time.Unix(1, 0), NodeState{Name: "n", UID: "u", Version: "1", Fenced: fenced, Reported: []VolumeID{v}, InUse: []VolumeID{v}})
		l.Apply(time.Unix(2, 0), Unreported{Volume: v, Node: "n", Forced: true})
		l.Apply(time.Unix(3, 0), NodeState{Name: "n", UID: "u", Version: "2", Ready: test.ready, Fenced: test.fenced, InUse: []VolumeID{v}})
		if p := l.Snapshot().Volume(v).OnNode("n"); p == nil || p.Proof.Forced == test.void {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestLettingInVoidsForce(t *testing.T) {
	for name, test := range map[string]struct {
		was, is []string
		void    bool
	}{
		"as it was":      {[]string{"d", "e"}, []string{"d", "e"}, false},
		"one more":       {[]string{"d"}, []string{"d", "e"}, false},
		"let in":         {[]string{"d"}, nil, true},
		"one of two":     {[]string{"d", "e"}, []string{"e"}, true},
		"another's turn": {[]string{"d"}, []string{"e"}, true},
	} {
		l, v := New(), VolumeID{"d", "h"}
		l.Apply(time.Unix(1, 0), NodeState{Name: "n", UID: "u", Version: "1", CutOff: test.was, Reported: []VolumeID{v}, InUse: []VolumeID{v}})
		l.Apply(time.Unix(2, 0), Unreported{Volume: v, Node: "n", Forced: true})
		l.Apply(time.Unix(3, 0), NodeState{Name: "n", UID: "u", Version: "2", CutOff: test.is, InUse: []VolumeID{v}})
		n := l.Snapshot().Node("n")
		if p := l.Snapshot().Volume(v).OnNode("n"); p == nil || p.Proof.Forced == test.void || n.IsCutOff("d") != slices.Contains(test.is, "d") {
			t.Errorf("%s: %+v %v", name, p, n.CutOff)
		}
	}
}

// Later writes are not the kubelet's.
func TestNotReadyIsHeardOnce(t *testing.T) {
	l, at := New(), func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
	for i, labels := range []map[string]string{nil, {"zone": "a"}, {"zone": "b"}} {
		l.Apply(at(600*i), NodeState{Name: "n", UID: "u", Version: string(rune('1' + i)), Ready: ReadyFalse, ReadySince: 1, Labels: labels})
	}
	if n := l.Snapshot().Node("n"); !n.Heard.IsZero() {
		t.Errorf("heard at %v", n.Heard)
	}
}

// Long unread times add up until the outage is over.
func TestLeaseUnread(t *testing.T) {
	type is struct {
		since, again int64 // seconds after 1000; 0: no time
		unread       time.Duration
	}
	refused := LeaseUnread{Node: "n", Refused: true}
	unread, read, renewed := LeaseUnread{Node: "n"}, NodeLease{Node: "n", Renewed: 5}, NodeLease{Node: "n", Renewed: 6}
	readyAgain := NodeState{Name: "n", UID: "u", Version: "2", Ready: ReadyTrue, ReadySince: 2}
	for name, test := range map[string]struct {
		events map[int]Event // by second
		want   is
	}{
		"never read":               {map[int]Event{10: unread}, is{since: 1}},
		"read before":              {map[int]Event{10: read, 15: unread, 20: unread}, is{since: 10}},
		"read again soon":          {map[int]Event{10: read, 15: unread, 30: read}, is{}},
		"read again":               {map[int]Event{10: read, 15: unread, 31: read}, is{again: 31, unread: 21 * time.Second}},
		"twice":                    {map[int]Event{10: read, 15: unread, 40: read, 45: unread, 70: read}, is{again: 70, unread: time.Minute}},
		"read for the first time":  {map[int]Event{10: unread, 100: read}, is{again: 100, unread: 99 * time.Second}},
		"nothing of it failed":     {map[int]Event{10: read, 100: read}, is{}},
		"renewed meanwhile":        {map[int]Event{10: read, 15: unread, 40: renewed}, is{}},
		"renewed before":           {map[int]Event{10: read, 15: unread, 40: read, 45: renewed, 50: unread, 80: renewed}, is{again: 80, unread: 35 * time.Second}},
		"refused at once":          {map[int]Event{10: refused, 100: refused}, is{}},
		"refused then":             {map[int]Event{10: read, 15: unread, 40: refused, 100: refused}, is{again: 40, unread: 30 * time.Second}},
		"its Node goes":            {map[int]Event{10: read, 15: unread, 40: NodeGone{"n"}}, is{again: 40, unread: 30 * time.Second}},
		"the outage is over":       {map[int]Event{10: read, 15: unread, 40: read, 45: unread, 50: readyAgain}, is{}},
		"unread of a Ready node":   {map[int]Event{10: readyAgain, 15: unread}, is{}},
		"unread of a Node is gone": {map[int]Event{10: NodeGone{"n"}, 15: unread}, is{}},
	} {
		l := New()
		l.Apply(time.Unix(1001, 0), Complete{})
		l.Apply(time.Unix(1001, 0), NodeState{Name: "n", UID: "u", Version: "1", Ready: ReadyUnknown, ReadySince: 1, InUse: []VolumeID{{"d", "h"}}})
		for second := range 200 {
			if e := test.events[second]; e != nil {
				l.Apply(time.Unix(1000+int64(second), 0), e)
			}
		}
		after := func(at time.Time) int64 {
			if at.IsZero() {
				return 0
			}
			return at.Unix() - 1000
		}
		n := l.Snapshot().Node("n")
		if got := (is{after(n.UnreadSince), after(n.ReadAgain), n.Unread}); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
	l := New()
	l.Apply(time.Unix(1000, 0), unread)
	if l.Snapshot().Node("n") != nil {
		t.Error("a node that is not known is")
	}
}

// The condition proves nothing about the Node's next machine.
func TestCutOffIsOfOneMachine(t *testing.T) {
	const cut, let = "d", ""
	type state struct{ uid, machine, cut string }
	for name, test := range map[string]struct {
		states []state
		proves bool
	}{
		"the machine that was cut off":     {[]state{{"u", "m", let}, {"u", "m", cut}}, true},
		"it booted":                        {[]state{{"u", "m", cut}, {"u", "m", cut}}, true},
		"another machine":                  {[]state{{"u", "m", cut}, {"u", "z", cut}}, false},
		"another machine, and later":       {[]state{{"u", "m", cut}, {"u", "z", cut}, {"u", "z", cut}}, false},
		"the machine is not said at first": {[]state{{"u", "m", cut}, {"u", "", cut}, {"u", "z", cut}}, false},
		"another one, cut off since":       {[]state{{"u", "m", cut}, {"u", "z", cut}, {"u", "z", let}, {"u", "z", cut}}, true},
		"another one, cut off at once":     {[]state{{"u", "m", let}, {"u", "z", cut}}, true},
		"a new Node":                       {[]state{{"u", "m", cut}, {"v", "z", cut}}, true},
		"nothing of before was seen":       {[]state{{"u", "z", cut}}, true},
		"let in":                           {[]state{{"u", "m", cut}, {"u", "m", let}}, false},
	} {
		l := New()
		for i, s := range test.states {
			n := NodeState{Name: "n", UID: s.uid, Version: strconv.Itoa(i + 1), SystemUUID: s.machine, BootID: strconv.Itoa(i)}
			if s.cut != "" {
				n.CutOff = []string{s.cut}
			}
			l.Apply(time.Unix(int64(i), 0), n)
		}
		if n := l.Snapshot().Node("n"); n.ProvesCutOff("d") != test.proves || n.ProvesCutOff("e") {
			t.Errorf("%s: %+v", name, n)
		}
	}
}
