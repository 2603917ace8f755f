// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"
	"time"
)

func answers(w NodeWord, list ...UnstageAnswer) NodeWord {
	w.Answers = list
	return w
}

func called(v VolumeID, number int64) UnstageAnswer {
	return UnstageAnswer{Volume: v, Number: number, Result: UnstageCalling, Unanswered: true}
}

// A call to unstage a volume may take effect until the driver has answered the last call, or the
// machine has booted: also if the reporting object or process is gone.
func TestUnanswered(t *testing.T) {
	v := VolumeID{"d", "h"}
	done := func(number int64) UnstageAnswer { return UnstageAnswer{Volume: v, Number: number, Result: UnstageDone} }
	other := wordOf("1", 0, 0, v)
	other.UID = "x"
	again, bootless := other, other
	again.Version, bootless.BootID = "2", ""
	booted := wordOf("3", 0, 0)
	booted.BootID = "c"
	for name, test := range map[string]struct {
		events []Event
		want   bool
	}{
		"called":                          {nil, true},
		"answered":                        {[]Event{answers(wordOf("3", 0, 0), done(2))}, false},
		"an earlier one is answered":      {[]Event{answers(wordOf("3", 0, 0), done(1))}, true},
		"a later one is answered":         {[]Event{answers(wordOf("3", 0, 0), done(3))}, false},
		"failed":                          {[]Event{answers(wordOf("3", 0, 0, v), UnstageAnswer{Volume: v, Number: 2, Result: UnstageFailed, Unanswered: true})}, true},
		"answered, and its record stays":  {[]Event{answers(wordOf("3", 0, 0, v), UnstageAnswer{Volume: v, Number: 2, Result: UnstageFailed})}, false},
		"not said any more":               {[]Event{wordOf("3", 0, 0)}, true},
		"not begun after all":             {[]Event{answers(wordOf("3", 0, 0, v), UnstageAnswer{Volume: v, Number: 2})}, false},
		"the next one is not begun":       {[]Event{answers(wordOf("3", 0, 0, v), UnstageAnswer{Volume: v, Number: 3})}, true},
		"not begun, and one before was":   {[]Event{answers(wordOf("3", 0, 0, v), UnstageAnswer{Volume: v, Number: 2, Unanswered: true})}, true},
		"the object is deleted":           {[]Event{NodeWordGone{Node: "n"}}, true},
		"and made again":                  {[]Event{NodeWordGone{Node: "n"}, other}, true},
		"and its call answered":           {[]Event{NodeWordGone{Node: "n"}, answers(other, done(3))}, false},
		"a later one is not begun":        {[]Event{NodeWordGone{Node: "n"}, answers(other, called(v, 3)), answers(again, UnstageAnswer{Volume: v, Number: 3})}, true},
		"nor the first, without a boot":   {[]Event{NodeWordGone{Node: "n"}, answers(bootless, UnstageAnswer{Volume: v, Number: 2, Unanswered: true}), wordOf("5", 0, 0, v)}, true},
		"the machine has booted":          {[]Event{booted}, false},
		"the Node says that it has":       {[]Event{NodeState{Name: "n", UID: "u", Version: "2", BootID: "c", Ready: ReadyTrue, Reporting: true}}, false},
		"the Node is gone":                {[]Event{NodeGone{"n"}}, true},
		"the Node is gone, and all of it": {[]Event{NodeWordGone{Node: "n"}, NodeGone{"n"}, AttachmentGone{AttachmentName(v, "n")}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := spoken(v, append([]Event{answers(wordOf("2", 0, 0, v), called(v, 2))}, test.events...)...).Snapshot().Node("n")
			if n.Unanswered(v) != test.want || n.MayBeUnstaged(v) != test.want {
				t.Errorf("it may have its effect: %t, want %t", n.Unanswered(v), test.want)
			}
		})
	}
}

// An order stands until moorage-node has answered to its number, or it is removed.
func TestOrdered(t *testing.T) {
	v, other := VolumeID{"d", "h"}, VolumeID{"d", "i"}
	word := wordOf("2", 5, 4, v)
	word.Orders = []UnstageOrder{{Volume: v, Number: 5}}
	for name, test := range map[string]struct {
		list []UnstageAnswer
		want bool
	}{
		"not answered":       {nil, true},
		"called":             {[]UnstageAnswer{called(v, 5)}, true},
		"refused":            {[]UnstageAnswer{{Volume: v, Number: 5}}, false},
		"an earlier refused": {[]UnstageAnswer{{Volume: v, Number: 4}}, true},
		"another volume's":   {[]UnstageAnswer{{Volume: other, Number: 5, Result: UnstageDone}}, true},
	} {
		n := spoken(v, answers(word, test.list...)).Snapshot().Node("n")
		if _, stands := n.Ordered(v); stands != test.want {
			t.Errorf("%s: it stands: %t", name, stands)
		}
		if _, stands := n.Ordered(other); stands {
			t.Errorf("%s: one for another volume stands", name)
		}
	}
}

// Failed orders are counted by volume, once each, and again from zero after a success.
func TestUnstageFailures(t *testing.T) {
	v, other := VolumeID{"d", "h"}, VolumeID{"d", "i"}
	failed := func(number int64) UnstageAnswer {
		return UnstageAnswer{Volume: v, Number: number, Result: UnstageFailed, Unanswered: true, Why: "busy"}
	}
	l := spoken(v)
	at := func(seconds int64) time.Time { return time.Unix(1000+seconds, 0) }
	said := func(seconds int64, version string, want int, last int64, list ...UnstageAnswer) {
		t.Helper()
		l.Apply(at(seconds), answers(wordOf(version, 0, 0, v, other), list...))
		n := l.Snapshot().Node("n")
		failures, since, _ := n.UnstageFailures(v)
		if failures != want || want > 0 && !since.Equal(at(last)) {
			t.Errorf("after %d s: %d failures since %s, want %d since %d s", seconds, failures, since, want, last)
		}
		if failures, _, _ := n.UnstageFailures(other); failures != 0 {
			t.Errorf("after %d s: %d failures of another volume", seconds, failures)
		}
	}
	said(0, "2", 0, 0, called(v, 1))
	said(1, "3", 1, 1, failed(1))
	said(2, "4", 1, 1, failed(1))
	said(3, "5", 2, 3, failed(2))
	l.Apply(at(4), UnstageNotOrdered{Volume: v, Node: "n"})
	said(5, "6", 3, 4, failed(2))
	said(6, "7", 0, 0, UnstageAnswer{Volume: v, Number: 3, Result: UnstageDone})
}

// A number is higher than all earlier numbers, also in an object that was made again; no number that a
// node writes lowers it.
func TestNextNumber(t *testing.T) {
	v := VolumeID{"d", "h"}
	for name, test := range map[string]struct {
		words []Event
		want  int64
	}{
		"nothing said":       {nil, 1},
		"asked":              {[]Event{wordOf("2", 7, 3)}, 8},
		"answered":           {[]Event{wordOf("2", 3, 7)}, 8},
		"ordered":            {[]Event{func() Event { w := wordOf("2", 3, 3); w.Orders = []UnstageOrder{{Volume: v, Number: 7}}; return w }()}, 8},
		"an order answered":  {[]Event{answers(wordOf("2", 3, 3), UnstageAnswer{Volume: v, Number: 7})}, 8},
		"a call of before":   {[]Event{answers(wordOf("2", 9, 9, v), called(v, 9)), NodeWordGone{Node: "n"}, wordOf("3", 0, 0, v)}, 10},
		"as high as can be":  {[]Event{wordOf("2", MaxNumber, 3)}, MaxNumber + 1},
		"higher than can be": {[]Event{wordOf("2", 1<<62, 3)}, MaxNumber + 1},
	} {
		if got := spoken(v, test.words...).Snapshot().Node("n").NextNumber(); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
	l := spoken(v, wordOf("2", 0, 0, v), Unreported{Volume: v, Node: "n", UID: proofUID("a"), Version: "1"})
	l.Apply(time.Unix(1000, 0), LookAsked{Volume: v, Node: "n", UID: proofUID("a"), Version: "1", Look: MaxNumber + 1})
	if got := l.Snapshot().Volume(v).NodeVolume("n").Proof.Look; got != 0 {
		t.Errorf("it was asked with %d", got)
	}
}

// After an order it must be proved again that no user wants the volume.
func TestUnstageSent(t *testing.T) {
	v := VolumeID{"d", "h"}
	at := Unreported{Volume: v, Node: "n", UID: proofUID("a"), Version: "1"}
	l := spoken(v, at, Unwanted(Unwanted{Volume: v, Node: "n", UID: proofUID("a"), Version: "1"}), UnstageSent{Volume: v, Node: "n"})
	if got := l.Snapshot().Volume(v).NodeVolume("n").Proof.Stage; got != ProofUnreported {
		t.Errorf("proved is %s", got)
	}
}
