// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// EndCause is why the controller ends a ticket.
type EndCause string

// Why the controller ends a ticket.
const (
	// EndTimeOver: spec.ttlSeconds are over.
	EndTimeOver EndCause = "TimeOver"
	// EndNodeCordoned: spec.onDrain is End, and the node is cordoned or its Node is being deleted.
	EndNodeCordoned EndCause = "NodeCordoned"
	// EndNodeDeleted: endTickets.afterNodeDeleted is over.
	EndNodeDeleted EndCause = "NodeDeleted"
	// EndNodeUnreachable: endTickets.afterNodeUnreachable is over.
	EndNodeUnreachable EndCause = "NodeUnreachable"
)

// What a ticket has lived is written down ttlSteps times in its life, and not more often than
// every ttlStep.
const (
	ttlSteps = 10
	ttlStep  = 30 * time.Second
)

// TTLStep is how much of a ticket's time of so many seconds the controller counts before it
// writes that down, which is as much as a restart may add to it.
func TTLStep(seconds int64) time.Duration {
	return max(time.Duration(seconds)*time.Second/ttlSteps, ttlStep)
}

// EndCauses lists them.
func EndCauses() []EndCause {
	return []EndCause{EndTimeOver, EndNodeCordoned, EndNodeDeleted, EndNodeUnreachable}
}

// TicketEnd is what becomes of a ticket by what has become of its node.
type TicketEnd struct {
	// Cause is why it ends now; empty: it does not.
	Cause EndCause
	// Left is how much of the time is left, and Again after which time the ticket is to be looked at
	// again, since more of it is over then; 0: no time runs.
	Left, Again time.Duration
	// Keep is what its status is to say of the outage of its node.
	Keep ledger.Outage
}

// EndOf says whether a ticket ends, because its node is emptied or gone. One with onDrain: Move moves instead (Keeps). A waiting ticket has nothing that a node
// that is gone would keep: it asks on. The end of a ticket proves nothing: what it had is detached by
// the same rules as what a pod had.
func EndOf(s ledger.Snapshot, t *ledger.Ticket, now time.Time) TicketEnd {
	if n := s.Node(t.Node); t.OnDrain == ledger.EndOnDrain && n != nil && n.Exists && n.Draining && (!t.Wherever || t.Phase == ledger.TicketGranted) {
		return TicketEnd{Cause: EndNodeCordoned}
	}
	gone, kept := nodeGone(s, t, now)
	end := TicketEnd{Left: gone.Left, Again: min(gone.Left, gone.Step), Keep: kept}
	if gone.over() && t.OnDrain != ledger.MoveOnDrain {
		end.Cause = EndCause(gone.Rule)
	}
	return end
}

// nodeGone says how much of the time is over after which a granted ticket leaves its node, since that
// is gone, and what the ticket's status is to say of it. It goes on where an earlier process stopped, as
// the times of a forced detach do: each may wait for a step of it again.
func nodeGone(s ledger.Snapshot, t *ledger.Ticket, now time.Time) (forcing, ledger.Outage) {
	n := s.Node(t.Node)
	if t.Phase != ledger.TicketGranted || n == nil || t.Node == ledger.Detached || ready(n) {
		return forcing{}, ledger.Outage{}
	}
	rule, limit := endsAfter(s, t, n)
	if limit < 0 {
		return forcing{}, ledger.Outage{}
	}
	time := timing{rule: string(rule), limit: limit, silence: silenceOf(n, now)}
	seen := time.seen()
	earlier, read := s.EarlierOutage(t)
	was := ledger.Force{Node: t.Node, NodeUID: earlier.NodeUID, Since: earlier.Since, Renewed: earlier.Renewed}
	if !time.whole && earlier != (ledger.Outage{}) && sameOutage(was, n) {
		seen = max(seen, earlier.Elapsed+time.heardFrom(read))
	}
	f := time.progress(seen, now)
	kept := ledger.Outage{Elapsed: f.Elapsed.Truncate(f.Step)}
	if kept.Elapsed == 0 || leaseUnread(n) {
		return f, t.NodeGone // as it is: nothing to keep yet, or whether it is the same outage is not known yet
	}
	kept.NodeUID = n.UID
	if n.Exists {
		kept.Since, kept.Renewed = n.ReadySince, n.Renewed
	}
	return f, kept
}

// endsAfter is after which time tickets end at a node that is not Ready, by which rule: the longest
// of the policies of the ticket's volumes; negative: never.
func endsAfter(s ledger.Snapshot, t *ledger.Ticket, n *ledger.Node) (EndCause, time.Duration) {
	rule, of := EndNodeDeleted, ticketsDeleted
	if n.Exists {
		rule, of = EndNodeUnreachable, ticketsLost
	}
	limit, found := time.Duration(0), false
	for _, id := range s.TicketAt(t.ID) {
		if v := s.Volume(id); v != nil {
			found, limit = true, longer(limit, of(policyOf(s, v)))
		}
	}
	if !found {
		return rule, never // it has nothing there
	}
	return rule, limit
}

// leaves says why a ticket with onDrain: Move is not to be at a node any more: somebody empties it, or
// it is gone for as long as the policy of its volumes says. One that waits goes to no node that the
// controller would not choose.
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

// MovesFor says why a ticket is to leave its node (onDrain: Move), by what has become of it; empty: it
// is not. A read of the Node has to show the same before the ticket loses its grant.
func MovesFor(s ledger.Snapshot, t *ledger.Ticket, now time.Time) EndCause {
	cause, _ := moves(s, t, now)
	return cause
}

// moves is MovesFor, and how people are told it.
func moves(s ledger.Snapshot, t *ledger.Ticket, now time.Time) (EndCause, string) {
	if t.OnDrain != ledger.MoveOnDrain || t.Node == "" {
		return "", ""
	}
	n := s.Node(t.Node)
	gone, _ := nodeGone(s, t, now)
	switch {
	case n != nil && n.Exists && n.Draining:
		return EndNodeCordoned, "is cordoned"
	case gone.over() && n.Exists:
		return EndNodeUnreachable, "is not ready"
	case gone.over():
		return EndNodeDeleted, "does not exist any more"
	}
	return "", ""
}
