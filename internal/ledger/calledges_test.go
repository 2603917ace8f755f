// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"testing"
	"time"
)

var edge, edge2 = VolumeID{"d", "h"}, VolumeID{"d", "i"}

// A report about an order's call, and which calls may take effect: the last that may have been made,
// and a later announced one.
func TestAnsweredCalls(t *testing.T) {
	is := func(number, next int64) call { return call{volume: edge, number: number, next: next, boot: "b"} }
	answer := func(r UnstageResult, number int64, unanswered bool) UnstageAnswer {
		return UnstageAnswer{Volume: edge, Number: number, Result: r, Unanswered: unanswered}
	}
	for name, test := range map[string]struct {
		was    call
		answer UnstageAnswer
		want   call
	}{
		"the first is about to be made":       {call{}, answer(UnstageCalling, 2, false), is(0, 2)},
		"it is said again":                    {is(0, 2), answer(UnstageCalling, 2, false), is(0, 2)},
		"a later one is, the first may be":    {is(0, 2), answer(UnstageCalling, 3, false), is(2, 3)},
		"one that may have been made":         {is(3, 0), answer(UnstageCalling, 3, false), is(3, 0)},
		"one before that":                     {is(3, 0), answer(UnstageCalling, 2, false), is(3, 0)},
		"a later one":                         {is(3, 0), answer(UnstageCalling, 4, false), is(3, 4)},
		"made, and not answered":              {is(0, 2), answer(UnstageFailed, 2, true), is(2, 0)},
		"an earlier one was not answered":     {is(0, 3), answer(UnstageFailed, 2, true), is(2, 3)},
		"a later one was not answered":        {is(0, 2), answer(UnstageFailed, 3, true), is(3, 0)},
		"done":                                {is(2, 0), answer(UnstageDone, 2, false), call{}},
		"done, and another is about to be":    {is(2, 3), answer(UnstageDone, 2, false), is(0, 3)},
		"done, the one about to be":           {is(2, 3), answer(UnstageDone, 3, false), call{}},
		"an earlier one is done":              {is(3, 4), answer(UnstageDone, 2, false), is(3, 4)},
		"answered, and it failed":             {is(2, 3), answer(UnstageFailed, 3, false), call{}},
		"refused, the one about to be":        {is(2, 3), answer(UnstageRefused, 3, false), is(2, 0)},
		"refused, another one":                {is(2, 3), answer(UnstageRefused, 4, false), is(2, 3)},
		"refused, the one that may have been": {is(2, 0), answer(UnstageRefused, 2, false), is(2, 0)},
	} {
		n := &Node{}
		if test.was != (call{}) {
			n.calls = []call{test.was}
		}
		before := slices.Clone(n.calls)
		shared := n.calls
		n.answered(test.answer, "b")
		if test.want == (call{}) && len(n.calls) > 0 || test.want != (call{}) && !slices.Equal(n.calls, []call{test.want}) {
			t.Errorf("%s: %+v", name, n.calls)
		}
		if !slices.Equal(shared, before) {
			t.Errorf("%s: older snapshots see %+v", name, shared)
		}
	}
	n := &Node{calls: []call{{volume: edge, number: 1}}}
	if n.answered(answer(UnstageCalling, 2, false), ""); n.calls[0].boot != "" {
		t.Errorf("without a boot it is of %q", n.calls[0].boot)
	}
	n = &Node{}
	for _, v := range []VolumeID{edge2, edge} {
		n.answered(UnstageAnswer{Volume: v, Number: 1, Result: UnstageCalling}, "b")
	}
	if len(n.calls) != 2 || n.calls[0].volume != edge {
		t.Errorf("calls are in no order: %+v", n.calls)
	}
}

// Calls end with their boot; a call of an unknown boot is of the present boot.
func TestCallsOfBoots(t *testing.T) {
	all := []call{{volume: edge, number: 1, boot: "a"}, {volume: edge2, number: 2, boot: "b"}, {volume: VolumeID{"d", "j"}, number: 3}}
	for boot, want := range map[string][]string{"b": {"i", "j"}, "c": {"j"}, "a": {"h", "j"}, "": {"h", "i", "j"}} {
		n := &Node{calls: slices.Clone(all)}
		shared := n.calls
		n.booted(boot)
		var got []string
		for _, c := range n.calls {
			got = append(got, c.volume.Handle)
			if boot != "" && c.boot != boot {
				t.Errorf("boot %q: a call of boot %q is left", boot, c.boot)
			}
		}
		if !slices.Equal(got, want) || !slices.Equal(shared, all) {
			t.Errorf("boot %q: %q are left, and older snapshots see %+v", boot, got, shared)
		}
	}
	for name, test := range map[string]struct {
		node, call string
		want       bool
	}{
		"of the boot that is there": {"b", "b", true}, "of another": {"b", "a", false}, "the Node says none": {"", "a", true}, "the call has none": {"b", "", true}, "neither has": {"", "", true},
	} {
		n := &Node{NodeState: NodeState{BootID: test.node}, calls: []call{{volume: edge, number: 2, next: 5, boot: test.call}}}
		made, next := n.Calls(edge)
		if n.Unanswered(edge) != test.want || (made == 2 && next == 5) != test.want || !test.want && (made != 0 || next != 0) {
			t.Errorf("%s: %d, %d", name, made, next)
		}
		if made, next := n.Calls(edge2); made != 0 || next != 0 {
			t.Errorf("%s: of another volume %d, %d", name, made, next)
		}
	}
	if made, next := (*Node)(nil).Calls(edge); made != 0 || next != 0 {
		t.Errorf("of a node that nobody knows: %d, %d", made, next)
	}
}

// A new report about orders touches their volumes, counts each failure once, and forgets missing volumes.
func TestHeardWords(t *testing.T) {
	now, later := time.Unix(1000, 0), time.Unix(1001, 0)
	failed := func(number int64, r UnstageResult) UnstageAnswer {
		return UnstageAnswer{Volume: edge, Number: number, Result: r, Why: "busy"}
	}
	word := func(uid string, has []VolumeID, list ...UnstageAnswer) *NodeWord {
		return &NodeWord{UID: uid, Has: has, BootID: "b", Answers: list}
	}
	there := []VolumeID{edge}
	for name, test := range map[string]struct {
		was, is  *NodeWord
		calls    []call
		failures int
	}{
		"it has failed":                     {nil, word("w", there, failed(1, UnstageFailed)), nil, 2},
		"it was refused":                    {nil, word("w", there, failed(1, UnstageRefused)), nil, 2},
		"it is said again":                  {word("w", there, failed(1, UnstageFailed)), word("w", there, failed(1, UnstageFailed)), nil, 1},
		"said again by another object":      {word("x", there, failed(1, UnstageFailed)), word("w", there, failed(1, UnstageFailed)), nil, 2},
		"refused, and then it has failed":   {word("w", there, failed(1, UnstageRefused)), word("w", there, failed(1, UnstageFailed)), nil, 2},
		"the next one failed":               {word("w", there, failed(1, UnstageFailed)), word("w", there, failed(2, UnstageFailed)), nil, 2},
		"refused number 0, nothing before":  {word("w", there), word("w", there, failed(0, UnstageRefused)), nil, 2},
		"it is about to be called":          {nil, word("w", there, failed(1, UnstageCalling)), nil, 1},
		"it is done":                        {nil, word("w", there, failed(1, UnstageDone)), nil, 0},
		"it is not there any more":          {nil, word("w", nil), nil, 0},
		"not there, and a call may unstage": {nil, word("w", nil), []call{{volume: edge, number: 1, boot: "b"}}, 1},
		"it is there still":                 {nil, word("w", there), nil, 1},
	} {
		n := &Node{calls: test.calls, attempts: []attempt{{volume: edge, failures: 1, at: now, why: "first"}}}
		shared := n.attempts
		var touched Touched
		n.hear(&touched, test.was, test.is, later)
		if got, _, _ := n.UnstageFailures(edge); got != test.failures {
			t.Errorf("%s: %d failures, want %d", name, got, test.failures)
		}
		if shared[0].failures != 1 {
			t.Errorf("%s: older snapshots see %+v", name, shared)
		}
		if about := len(test.is.Answers) > 0 || test.was != nil && len(test.was.Answers) > 0; slices.Contains(touched.Volumes, edge) != about {
			t.Errorf("%s: touched %v", name, touched.Volumes)
		}
	}
	var touched Touched
	(&Node{}).hear(&touched, &NodeWord{Orders: []UnstageOrder{{Volume: edge}}}, &NodeWord{Orders: []UnstageOrder{{Volume: edge2}}}, now)
	if !slices.Equal(touched.Volumes, []VolumeID{edge, edge2}) {
		t.Errorf("orders touch %v", touched.Volumes)
	}
}

// A sent order voids only the proof that no user wants the volume; a refused order counts for its volume,
// if there is a report. Both are this process's own.
func TestSentOrders(t *testing.T) {
	now := time.Unix(1000, 0)
	for was, want := range map[ProofStage]ProofStage{ProofNone: ProofNone, ProofUnreported: ProofUnreported, ProofUnwanted: ProofUnreported} {
		l := spoken(edge)
		l.changeNodeVolume(now, &Touched{}, edge, "n", func(p *NodeVolume) { p.Proof.Stage = was })
		touched := l.Apply(now, UnstageSent{Volume: edge, Node: "n"})
		if got := l.Snapshot().Volume(edge).NodeVolume("n").Proof.Stage; got != want || !touched.Own {
			t.Errorf("%s: %s, own: %t", was, got, touched.Own)
		}
	}
	if touched := New().Apply(now, UnstageSent{Volume: edge, Node: "n"}); !touched.Own || len(touched.Volumes) > 0 {
		t.Errorf("of a volume that nobody knows: %+v", touched)
	}
	refused := UnstageNotOrdered{Volume: edge, Node: "n"}
	l := spoken(edge, wordOf("1", 0, 0, edge))
	if touched := l.Apply(now, refused); !touched.Own || !slices.Equal(touched.Volumes, []VolumeID{edge}) {
		t.Errorf("refused: %+v", touched)
	}
	if got, _, why := l.Snapshot().Node("n").UnstageFailures(edge); got != 1 || why == "" {
		t.Errorf("refused: %d failures, %q", got, why)
	}
	for name, l := range map[string]*Ledger{"no word": spoken(edge), "no node": New()} {
		if touched := l.Apply(now, refused); !touched.Own || len(touched.Volumes) > 0 {
			t.Errorf("%s: %+v", name, touched)
		}
		if got, _, _ := l.Snapshot().Node("n").UnstageFailures(edge); got != 0 {
			t.Errorf("%s: %d failures", name, got)
		}
	}
	for _, e := range []Event{LookRefused{Node: "n"}, LookAsked{Volume: edge, Node: "n"}} {
		if touched := New().Apply(now, e); !touched.Own {
			t.Errorf("%T is not this process's own", e)
		}
	}
}

// The next number is one more than the highest, as far as the API takes it.
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

// Only the answer to its own number answers an order.
func TestEndedOrders(t *testing.T) {
	for name, test := range map[string]struct {
		answers []UnstageAnswer
		want    bool
	}{
		"no answer": {nil, false}, "of another volume": {[]UnstageAnswer{{Volume: edge2, Number: 0}}, false},
		"its own": {[]UnstageAnswer{{Volume: edge, Number: 0}}, true}, "another number's": {[]UnstageAnswer{{Volume: edge, Number: 1}}, false},
	} {
		if got := (&NodeWord{Answers: test.answers}).ended(UnstageOrder{Volume: edge}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// An earlier process's view of the outage of a ticket's node stays as first read, for that ticket at
// that node; it was read at Complete at the earliest.
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

// A change of the belief in storages' conditions touches the nodes that have one.
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

// A volume is seen at a node by anything but a hold.
func TestSeenWithoutAHold(t *testing.T) {
	for name, test := range map[string]struct {
		p    *NodeVolume
		want bool
	}{
		"attached": {&NodeVolume{first: &attachmentRecord{}}, true}, "sent": {&NodeVolume{Sent: true}, true}, "reported": {&NodeVolume{Reported: true}, true},
		"in use": {&NodeVolume{InUse: true}, true}, "left": {&NodeVolume{Left: true}, false}, "held": {&NodeVolume{Held: true}, false},
		"wanted": {&NodeVolume{Users: []User{{Pod: "p"}}}, false}, "nothing": {nil, false},
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
