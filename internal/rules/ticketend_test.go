// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

type endWorld struct {
	t      *testing.T
	ledger *ledger.Ledger
	now    time.Time
}

func newEndWorld(t *testing.T, k ledger.Ticket) *endWorld {
	t.Helper()
	w, disk := &endWorld{t, ledger.New(), time.Unix(1000, 0)}, ledger.VolumeID{Driver: "disk", Handle: "h"}
	w.see(
		ledger.PersistentVolume{Name: "pv", UID: "pv", Version: "1", Volume: disk, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}},
		ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}, UID: "data", Version: "1", PersistentVolume: "pv", Bound: true, Access: ledger.AccessNode},
		placeNode("a"), slotsOf("a", 4), k,
		ledger.Attachment{Name: ledger.AttachmentName(disk, "b"), UID: "va", Version: "1", Driver: "disk", Node: "b", PersistentVolume: "pv", Attached: true},
		ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Version: "1", Node: "b", State: ledger.HoldHeld}},
	)
	return w
}

func (w *endWorld) see(events ...ledger.Event) {
	for _, e := range events {
		w.ledger.Apply(w.now, e)
	}
}

func (w *endWorld) end() rules.TicketEnd {
	s := w.ledger.Snapshot()
	return rules.EndOf(s, s.Ticket(ledger.TicketID{Namespace: "shop", Name: "t"}), w.now)
}

func (w *endWorld) ends(in time.Duration, want rules.EndCause) {
	w.t.Helper()
	w.now = w.now.Add(in)
	if got := w.end(); got.Cause != want {
		w.t.Errorf("%s later it ends for %q, want %q (left %s)", in, got.Cause, want, got.Left)
	}
}

func grantedAt(n ledger.NodeName, change ...func(*ledger.Ticket)) ledger.Ticket {
	k := putAt(n)
	k.Wherever, k.Phase = false, ledger.TicketGranted
	for _, c := range change {
		c(&k)
	}
	return k
}

func endsOnDrain(k *ledger.Ticket) { k.OnDrain = ledger.EndOnDrain }
func waitsFor(k *ledger.Ticket)    { k.Phase = ledger.TicketPending }
func anywhere(k *ledger.Ticket)    { k.Wherever = true }
func moves(k *ledger.Ticket)       { k.Wherever, k.OnDrain = true, ledger.MoveOnDrain }

// Only with onDrain: End.
func TestTicketEndsOnDrain(t *testing.T) {
	cordoned := func(s *ledger.NodeState) { s.Draining = true }
	for name, test := range map[string]struct {
		ticket ledger.Ticket
		node   ledger.NodeState
		want   rules.EndCause
	}{
		"it says so":                {grantedAt("b", endsOnDrain), placeNode("b", cordoned), rules.EndNodeCordoned},
		"it waits":                  {grantedAt("b", endsOnDrain, waitsFor), placeNode("b", cordoned), rules.EndNodeCordoned},
		"not cordoned":              {grantedAt("b", endsOnDrain), placeNode("b"), ""},
		"it stays":                  {grantedAt("b"), placeNode("b", cordoned), ""},
		"it moves":                  {grantedAt("b", moves), placeNode("b", cordoned), ""},
		"wherever, and granted":     {grantedAt("b", endsOnDrain, anywhere), placeNode("b", cordoned), rules.EndNodeCordoned},
		"wherever, and not granted": {grantedAt("b", endsOnDrain, anywhere, waitsFor), placeNode("b", cordoned), ""},
		"at no node":                {grantedAt("", endsOnDrain, waitsFor), placeNode("b", cordoned), ""},
	} {
		w := newEndWorld(t, test.ticket)
		w.see(test.node)
		if got := w.end(); got.Cause != test.want {
			t.Errorf("%s: ends for %q, want %q", name, got.Cause, test.want)
		}
	}
	w := newEndWorld(t, grantedAt("b", endsOnDrain))
	w.see(placeNode("b", cordoned), ledger.Complete{}, ledger.NodeGone{Name: "b"})
	w.ends(0, "") // a deleted node can't be drained: its time runs
	w.ends(rules.AfterNodeDeleted, rules.EndNodeDeleted)
}

// Six minutes after the deletion of its Node, never while the Node exists.
func TestTicketEndsWithItsNode(t *testing.T) {
	for name, test := range map[string]struct {
		ticket ledger.Ticket
		want   rules.EndCause
	}{
		"granted": {grantedAt("b"), rules.EndNodeDeleted},
		"waits":   {grantedAt("b", waitsFor), ""},
		"moves":   {grantedAt("b", moves), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEndWorld(t, test.ticket)
			w.see(placeNode("b"), ledger.Complete{})
			w.ends(time.Hour, "")
			w.see(ledger.NodeGone{Name: "b"})
			w.ends(rules.AfterNodeDeleted-time.Second, "")
			w.ends(time.Second, test.want)
		})
	}
	w := newEndWorld(t, grantedAt("b"))
	w.see(placeNode("b", func(s *ledger.NodeState) { s.Ready = ledger.ReadyUnknown }), ledger.Complete{})
	w.ends(24*time.Hour, "")
}

// The time begins anew after each Ready.
func TestTicketEndCountsSinceReady(t *testing.T) {
	down := func(version string) ledger.NodeState {
		n := placeNode("b")
		n.Ready, n.ReadySince, n.Version = ledger.ReadyUnknown, 7, version
		return n
	}
	w := newEndWorld(t, grantedAt("b"))
	w.see(placeNode("b"), ledger.Complete{}, down("2"))
	w.ends(5*time.Minute, "")
	up := placeNode("b")
	up.Version = "3"
	w.see(up, down("4"))
	w.ends(5*time.Minute, "")
	w.see(ledger.NodeGone{Name: "b"})
	w.ends(59*time.Second, "")
	w.ends(time.Second, rules.EndNodeDeleted)
}

// A count of another Node is dropped.
func TestTicketsTimeSurvivesTheLeader(t *testing.T) {
	for name, test := range map[string]struct {
		was  ledger.Outage
		left time.Duration
	}{
		"the same Node":       {ledger.Outage{Elapsed: 4 * time.Minute, NodeUID: "b"}, 2 * time.Minute},
		"another Node":        {ledger.Outage{Elapsed: 4 * time.Minute, NodeUID: "c"}, 6 * time.Minute},
		"nothing was counted": {ledger.Outage{}, 6 * time.Minute},
		"more than there is":  {ledger.Outage{Elapsed: time.Hour, NodeUID: "b"}, 0},
	} {
		w := newEndWorld(t, grantedAt("b", func(k *ledger.Ticket) { k.NodeGone = test.was }))
		w.see(placeNode("b", func(s *ledger.NodeState) { s.Ready = ledger.ReadyUnknown }), ledger.NodeGone{Name: "b"}, ledger.Complete{})
		got := w.end()
		if got.Left != test.left || (got.Cause != "") != (test.left == 0) {
			t.Errorf("%s: %s are left, want %s (%q)", name, got.Left, test.left, got.Cause)
		}
	}
}

// Nothing is written while the Node exists.
func TestTicketsTimeIsWrittenInSteps(t *testing.T) {
	w := newEndWorld(t, grantedAt("b"))
	w.see(placeNode("b"), ledger.Complete{}, ledger.NodeGone{Name: "b"})
	for _, step := range []struct{ in, want time.Duration }{{29 * time.Second, 0}, {time.Second, 30 * time.Second}, {89 * time.Second, 90 * time.Second}, {time.Second, 2 * time.Minute}} {
		w.now = w.now.Add(step.in)
		if got := w.end(); got.Keep.Elapsed != step.want || (step.want > 0) != (got.Keep.NodeUID == "b") {
			t.Errorf("%s later %+v is written, want %s", step.in, got.Keep, step.want)
		}
	}
	back := placeNode("b")
	back.UID = "again"
	w.see(back)
	if got := w.end(); got != (rules.TicketEnd{}) {
		t.Errorf("the node is back, and it is %+v", got)
	}
}

// A ticket that moves is granted only at nodes that Moorage would choose.
func TestTicketMoves(t *testing.T) {
	cordoned := placeNode("b", func(s *ledger.NodeState) { s.Draining = true })
	w := newEndWorld(t, grantedAt("b", moves))
	w.see(placeNode("b"), slotsOf("b", 4))
	id := ledger.TicketID{Namespace: "shop", Name: "t"}
	keeps := func() rules.Verdict {
		s := w.ledger.Snapshot()
		return (rules.Arbiter{}).Keeps(s, s.Ticket(id), w.now)
	}
	if v := keeps(); !v.Allowed() {
		t.Errorf("it loses its grant: %s", v.First().Message())
	}
	w.see(cordoned)
	if v := keeps(); v.First().Code != rules.LeavesNode {
		t.Errorf("it keeps its grant at a cordoned node: %s", v.First().Message())
	}
	waiting := grantedAt("b", moves, waitsFor)
	waiting.Version, waiting.Reason = "3", string(rules.LeavesNode)
	w.see(waiting)
	s := w.ledger.Snapshot()
	if v := (rules.Arbiter{}).Grant(s, s.Ticket(id), w.now); v.First().Code != rules.LeavesNode {
		t.Errorf("it is granted at a cordoned node: %s", v.First().Message())
	}
	if n, v := (rules.Arbiter{}).Place(s, s.Ticket(id), w.now); n != "a" {
		t.Errorf("it is put at %q: %s", n, v.First().Message())
	}
	w.see(usesAt("b")) // a pod has the volume there
	s = w.ledger.Snapshot()
	if n, _ := (rules.Arbiter{}).Place(s, s.Ticket(id), w.now); n != "b" {
		t.Errorf("it is put at %q, away from its volume", n)
	}
	if v := (rules.Arbiter{}).Grant(s, s.Ticket(id), w.now); v.First().Code != rules.LeavesNode {
		t.Errorf("it is granted beside the pod that is to leave: %s", v.First().Message())
	}
}

func TestTicketMovesFromANodeThatIsGone(t *testing.T) {
	w := newEndWorld(t, grantedAt("b", moves))
	w.see(placeNode("b"), ledger.Complete{}, ledger.NodeGone{Name: "b"})
	for in, want := range map[time.Duration]bool{rules.AfterNodeDeleted - time.Second: true, rules.AfterNodeDeleted: false} {
		s := w.ledger.Snapshot()
		v := (rules.Arbiter{}).Keeps(s, s.Ticket(ledger.TicketID{Namespace: "shop", Name: "t"}), w.now.Add(in))
		if v.Allowed() != want {
			t.Errorf("after %s it keeps its grant: %t (%s)", in, v.Allowed(), v.First().Message())
		}
	}
}

func TestDetachedTicketsDoNotEndWithANode(t *testing.T) {
	k := ledger.Ticket{
		ID: ledger.TicketID{Namespace: "shop", Name: "fsck"}, UID: "fsck", Version: "1", Type: ledger.TypeSalvage, Node: ledger.Detached,
		Phase: ledger.TicketGranted, Volumes: []ledger.TicketVolume{{Claim: "data"}},
	}
	for name, change := range map[string]func(*ledger.Ticket){
		"at no node":   func(*ledger.Ticket) {},
		"and one more": func(k *ledger.Ticket) { k.OnDrain = ledger.EndOnDrain },
	} {
		own := k
		change(&own)
		w := newEndWorld(t, own)
		w.see(ledger.Complete{})
		s := w.ledger.Snapshot()
		if end := rules.EndOf(s, s.Ticket(k.ID), w.now.Add(24*time.Hour)); end != (rules.TicketEnd{}) {
			t.Errorf("%s: it ends: %+v", name, end)
		}
	}
}
