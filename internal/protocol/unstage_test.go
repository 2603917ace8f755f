// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// orderedWord is the report of a node with two orders, one of them ended.
func orderedWord() ledger.NodeWord {
	other, ended := ledger.VolumeID{Driver: driver, Handle: "other"}, ledger.VolumeID{Driver: driver, Handle: "ended"}
	return ledger.NodeWord{
		Node: "n1", UID: "w", Version: "3", BootID: "b", KubeletStarted: 9, Look: 4, Looked: 4,
		Orders:  []ledger.UnstageOrder{{Volume: ended, Number: 3}, {Volume: other, Number: 4}},
		Answers: []ledger.UnstageAnswer{{Volume: ended, Number: 3, Result: ledger.UnstageDone}},
	}
}

// An order is written at the read version. The outcome of an unanswered write is read after it is
// outlasted, before any other decision.
func TestOrderUnstage(t *testing.T) {
	word := orderedWord()
	newer := word
	newer.Version = "5"
	const sent, order, look = "tell UnstageSent", "order-unstage uid=w version=3", "get nodevolumes n1"
	for name, test := range map[string]struct {
		replies []reply
		want    []string
	}{
		"ordered":               {[]reply{replies(Done, newer)}, []string{sent, order, "finished"}},
		"somebody else writes":  {[]reply{replies(Conflict), replies(Done, newer)}, []string{sent, order, look, "stale"}},
		"it is gone":            {[]reply{replies(NotFound)}, []string{sent, order, "tell NodeWordGone", "stale"}},
		"no answer":             {[]reply{replies(Unknown), replies(Done, newer)}, []string{sent, order, "wait 20s", look, "stale"}},
		"no answer, and gone":   {[]reply{replies(Unknown), replies(NotFound)}, []string{sent, order, "wait 20s", look, "tell NodeWordGone", "stale"}},
		"refused":               {[]reply{replies(Refused)}, []string{sent, order, "tell UnstageNotOrdered", "failed"}},
		"not sent":              {[]reply{replies(NotSent)}, []string{sent, order, "failed"}},
		"no answer to the read": {[]reply{replies(Conflict), replies(Unknown)}, []string{sent, order, look, "failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(attachment("5"), word)
			check(t, p.play(t, Do(step(rules.OrderUnstage, func(s *rules.Step) { s.Word, s.Number = word, 7 })), test.replies...), test.want...)
			failures, _, _ := p.ledger.Snapshot().Node("n1").UnstageFailures(disk)
			if want := map[bool]int{true: 1}[name == "refused"]; failures != want {
				t.Errorf("%d failures, want %d", failures, want)
			}
		})
	}
}

// An order keeps standing orders for other volumes, and replaces its own volume's. A withdrawal removes
// that and asks for nothing.
func TestOrdersOfANode(t *testing.T) {
	word := orderedWord()
	for _, test := range []struct {
		do      rules.Action
		numbers []int64
		look    int64
	}{{rules.OrderUnstage, []int64{7, 4}, 7}, {rules.WithdrawUnstage, []int64{4}, 0}} {
		_, m := (&Memory{}).beginUnstage(Do(step(test.do, func(s *rules.Step) { s.Word, s.Number = word, 7 })))
		var numbers []int64
		for _, o := range m.Send.Orders {
			numbers = append(numbers, o.Number)
			if o.Number == 7 && (o.Volume != disk || o.BootID != "b" || o.KubeletStarted != 9 || o.Seconds != 30) {
				t.Errorf("the order is %+v", o)
			}
		}
		if len(numbers) != len(test.numbers) || numbers[0] != test.numbers[0] || numbers[len(numbers)-1] != test.numbers[len(numbers)-1] || m.Send.Look != test.look {
			t.Errorf("%s writes %v, and asks with %d", test.do, numbers, m.Send.Look)
		}
	}
}

// Before the first report of a term at a node with moorage-node, the orders there are read: no volume is
// put back that may be unstaged.
func TestReportReadsOrders(t *testing.T) {
	quiet := orderedWord()
	ordered := quiet
	ordered.Version, ordered.Orders = "6", []ledger.UnstageOrder{{Volume: disk, Number: 9}}
	reporting := step(rules.Report, func(s *rules.Step) { s.NodeUID = "n" })
	const look, confirm, sent, patch = "get nodevolumes n1", "confirm-attachment uid=va", "tell ReportSent", "patch-node n1 add=true uid=n"
	attached := attachment("6")
	attached.Attached = true
	for name, test := range map[string]struct {
		heard   bool
		replies []reply
		want    []string
	}{
		"nothing is ordered": {false, []reply{replies(Done, quiet), replies(Done, attached), replies(Done)}, []string{look, confirm, sent, patch, "finished"}},
		"ordered":            {false, []reply{replies(Done, ordered)}, []string{look, "stale"}},
		"it is gone":         {false, []reply{replies(NotFound), replies(Done, attached), replies(Done)}, []string{look, confirm, sent, patch, "finished"}},
		"no answer":          {false, []reply{replies(Unknown)}, []string{look, "failed"}},
		"read before":        {true, []reply{replies(Done, attached), replies(Done)}, []string{confirm, sent, patch, "finished"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(attachment("5"), quiet)
			if test.heard {
				p.memory.heard.add("n1")
			}
			check(t, p.play(t, Do(reporting), test.replies...), test.want...)
		})
	}
}
