// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// EndCause is why the controller ends a ticket.
type EndCause string

// Why the controller ends a ticket.
const (
	// EndTimeOver: spec.ttlSeconds are over.
	EndTimeOver EndCause = "TimeOver"
	// EndNodeCordoned: spec.onDrain is End, and the node is cordoned or being deleted.
	EndNodeCordoned EndCause = "NodeCordoned"
	// EndNodeDeleted: its Node is deleted, and AfterNodeDeleted is over.
	EndNodeDeleted EndCause = "NodeDeleted"
)

// A ticket's age is written ttlSteps times in its life, at intervals of ttlStep or more.
const (
	ttlSteps = 10
	ttlStep  = 30 * time.Second
)

// TTLStep is the part of a ticket's time between writes of its age. A restart may add as much.
func TTLStep(seconds int64) time.Duration {
	return max(time.Duration(seconds)*time.Second/ttlSteps, ttlStep)
}

// EndCauses lists all causes.
func EndCauses() []EndCause {
	return []EndCause{EndTimeOver, EndNodeCordoned, EndNodeDeleted}
}

// TicketEnd is a ticket's fate by its node's state.
type TicketEnd struct {
	// Cause is empty if it does not end now.
	Cause EndCause
	// Left is the rest of the time, Again the time until the next check; 0: no time runs.
	Left, Again time.Duration
	// Keep is the status's record of its deleted Node.
	Keep ledger.Outage
}

// EndOf says whether a ticket ends because its node is drained or gone. With onDrain: Move it moves instead
// (Keeps). A pending ticket keeps waiting. The end proves nothing: its volumes are detached by the same
// rules as a pod's.
func EndOf(s ledger.Snapshot, t *ledger.Ticket, now time.Time) TicketEnd {
	if n := s.Node(t.Node); t.OnDrain == ledger.EndOnDrain && n != nil && n.Exists && n.Draining && (!t.Wherever || t.Phase == ledger.TicketGranted) {
		return TicketEnd{Cause: EndNodeCordoned}
	}
	gone, kept := nodeGone(s, t, now)
	end := TicketEnd{Left: gone.Left, Again: min(gone.Left, gone.Step), Keep: kept}
	if gone.over() && t.OnDrain != ledger.MoveOnDrain {
		end.Cause = EndNodeDeleted
	}
	return end
}

// nodeGone returns the progress toward a granted ticket's end after its Node's deletion, and its status's
// record. It continues an earlier process's count, and each process may wait for one step again. While the
// Node exists no time runs: the volumes may be in use there.
func nodeGone(s ledger.Snapshot, t *ledger.Ticket, now time.Time) (forcing, ledger.Outage) {
	n := s.Node(t.Node)
	if t.Phase != ledger.TicketGranted || n == nil || n.Exists || t.Node == ledger.Detached || !hasVolumes(s, t) {
		return forcing{}, ledger.Outage{}
	}
	time := timing{rule: string(EndNodeDeleted), limit: AfterNodeDeleted, silence: silenceOf(n, now)}
	seen := time.seen()
	earlier, read := s.EarlierOutage(t)
	if !time.whole && earlier != (ledger.Outage{}) && (n.UID == "" || n.UID == earlier.NodeUID) {
		seen = max(seen, earlier.Elapsed+time.heardFrom(read))
	}
	f := time.progress(seen, now)
	kept := ledger.Outage{Elapsed: f.Elapsed.Truncate(f.Step), NodeUID: n.UID}
	if kept.Elapsed == 0 {
		return f, t.NodeGone // nothing to record yet
	}
	return f, kept
}

// hasVolumes says whether a ticket leads to any volume.
func hasVolumes(s ledger.Snapshot, t *ledger.Ticket) bool {
	return slices.ContainsFunc(s.TicketAt(t.ID), func(id ledger.VolumeID) bool { return s.Volume(id) != nil })
}

// leaves says why a ticket with onDrain: Move must leave a drained or deleted node. A pending ticket avoids
// nodes that Moorage would not choose.
func leaves(s ledger.Snapshot, t *ledger.Ticket, now time.Time) []Reason {
	cause, detail := moves(s, t, now)
	switch {
	case cause != "":
	case t.OnDrain == ledger.MoveOnDrain && t.Node != "" && t.Phase != ledger.TicketGranted && !takesTickets(s.Node(t.Node)):
		detail = "takes no tickets now"
	default:
		return nil
	}
	return []Reason{{Code: LeavesNode, Node: t.Node, Detail: detail}}
}

// MovesFor says why a ticket with onDrain: Move must move; empty: it stays. A read of the Node must confirm
// this before the ticket loses its grant.
func MovesFor(s ledger.Snapshot, t *ledger.Ticket, now time.Time) EndCause {
	cause, _ := moves(s, t, now)
	return cause
}

// moves is MovesFor with its message.
func moves(s ledger.Snapshot, t *ledger.Ticket, now time.Time) (EndCause, string) {
	if t.OnDrain != ledger.MoveOnDrain || t.Node == "" {
		return "", ""
	}
	n := s.Node(t.Node)
	gone, _ := nodeGone(s, t, now)
	switch {
	case n != nil && n.Exists && n.Draining:
		return EndNodeCordoned, "is cordoned"
	case gone.over():
		return EndNodeDeleted, "does not exist any more"
	}
	return "", ""
}
