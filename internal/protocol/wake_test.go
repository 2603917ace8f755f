// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestWake(t *testing.T) {
	waits := ticket("w", "n1", ledger.TypeManual, "a")
	manual, granted := ticket("m", "n2", ledger.TypeManual, "a"), ticket("g", "n2", ledger.TypeManual, "a")
	granted.Phase = ledger.TicketGranted
	s := facts(waits, manual, granted, pod("b", "n1", "a"), pod("c", "n1", "c")).Snapshot()
	look := Wake(ledger.Touched{Volumes: []ledger.VolumeID{disk}, Nodes: []ledger.NodeName{"n1", "n9"}}, s)
	unattached := ledger.VolumeID{Driver: driver, Handle: "c"} // it may wait for a slot of the node
	if !slices.Equal(look.Volumes, []ledger.VolumeID{disk, unattached}) || !slices.Equal(look.Nodes, []ledger.NodeName{"n1", "n2"}) {
		t.Errorf("woken: %+v", look)
	}
	for _, id := range []ledger.TicketID{granted.ID} {
		if !slices.Contains(look.Tickets, id) {
			t.Errorf("ticket %s is not woken", id)
		}
	}
	if !slices.Contains(look.Pods, "uid-b") || slices.Contains(look.Pods, "uid-c") {
		t.Errorf("woken are the pods %v", look.Pods)
	}
	if look := Wake(ledger.Touched{Tickets: []ledger.TicketID{waits.ID}}, s); len(look.Pods) > 0 || !slices.Equal(look.Tickets, []ledger.TicketID{waits.ID}) {
		t.Errorf("woken by a ticket: %+v", look)
	}
	if look := Wake(ledger.Touched{Pods: []string{"uid-c"}}, s); !slices.Equal(look.Pods, []string{"uid-c"}) {
		t.Errorf("woken by a pod: %+v", look)
	}
}

// Waiting tickets hear only by their node.
func TestUsers(t *testing.T) {
	manual, granted, doubted := ticket("m", "n2", ledger.TypeManual, "a"), ticket("g", "n2", ledger.TypeManual, "a"), ticket("d", "n3", ledger.TypeManual, "a")
	granted.Phase = ledger.TicketGranted
	s := facts(manual, ticket("n", "n2", ledger.TypeManual, "a"), granted, doubted, ledger.TicketInDoubt{ID: doubted.ID, UID: doubted.UID},
		pod("b", "n1", "a"), pod("alone", "n1", "a")).Snapshot()
	tickets, pods, nodes := Users(s, disk)
	slices.SortFunc(tickets, func(a, b ledger.TicketID) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(pods)
	if want := []ledger.TicketID{doubted.ID, granted.ID}; !slices.Equal(tickets, want) {
		t.Errorf("tickets %v, want %v", tickets, want)
	}
	if want := []string{"uid-alone", "uid-b"}; !slices.Equal(pods, want) {
		t.Errorf("pods %v, want %v", pods, want)
	}
	if want := []ledger.NodeName{"n2"}; !slices.Equal(nodes, want) {
		t.Errorf("nodes %v, want %v", nodes, want)
	}
	if tickets, pods, nodes := Users(s, ledger.VolumeID{Driver: driver, Handle: "unknown"}); len(tickets)+len(pods)+len(nodes) > 0 {
		t.Errorf("of a volume that nobody knows: %v, %v, %v", tickets, pods, nodes)
	}
}

func TestPending(t *testing.T) {
	s := facts(ticket("w", "n2", ledger.TypeManual, "a")).Snapshot()
	for n, want := range map[ledger.NodeName]bool{"n1": false, "n2": true, "n9": false} {
		if got := Pending(s, n); got != want {
			t.Errorf("tickets wait for %s: %t", n, got)
		}
	}
}

func TestEmptied(t *testing.T) {
	ends, moves, stays, granted := ticket("e", "n2", ledger.TypeManual, "a"), ticket("m", "n2", ledger.TypeBackup, "a"), ticket("s", "n2", ledger.TypeManual, "a"), ticket("g", "n2", ledger.TypeManual, "a")
	ends.OnDrain, moves.OnDrain, granted.OnDrain, granted.Phase = ledger.EndOnDrain, ledger.MoveOnDrain, ledger.EndOnDrain, ledger.TicketGranted
	l := facts(ends, moves, stays, granted)
	if got := EmptiedWith(l.Snapshot(), "n2"); len(got) > 0 {
		t.Errorf("a node that nobody empties wakes %v", got)
	}
	node := *l.Snapshot().Node("n2")
	cordoned := node.NodeState
	cordoned.Draining, cordoned.Version = true, "9"
	l.Apply(now, cordoned)
	look := Wake(ledger.Touched{Nodes: []ledger.NodeName{"n2"}}, l.Snapshot())
	if want := []ledger.TicketID{ends.ID, moves.ID}; !slices.Equal(look.Tickets, want) {
		t.Errorf("woken are %v, want %v", look.Tickets, want)
	}
	if got := EmptiedWith(l.Snapshot(), "n9"); len(got) > 0 {
		t.Errorf("a node that is not there wakes %v", got)
	}
}
