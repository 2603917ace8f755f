// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Decide is the task that writes a pending ticket's grant, or why it waits.
func Decide(d Decided) Task {
	t := Task{Ticket: d.Ticket, Commit: decide(d.Ticket, ledger.TicketPending, d.Verdict)}
	if d.Ruling == Grant {
		t.Commit.Phase, t.Commit.Granted = ledger.TicketGranted, d.Volumes
	}
	return t
}

// Announce is told to the ledger before the next decision. A grant unknown to the ledger is not sent.
func Announce(list []Decided) []ledger.Event {
	var events []ledger.Event
	for _, d := range list {
		if d.Ruling == Grant {
			events = append(events, ledger.GrantSent{ID: d.Ticket.ID, UID: d.Ticket.UID, Version: d.Ticket.Version})
		}
	}
	return events
}

func (t Task) grants() bool {
	return t.Commit.Kind == rules.DecideTicket && !t.Commit.EpochOnly && t.Commit.Phase == ledger.TicketGranted && t.Ticket.Phase == ledger.TicketPending
}

// satisfiedForLong is the time satisfied after which a ticket's count of interruptions restarts.
const satisfiedForLong = 10 * time.Minute

// Interruption is the task that takes a ticket's grant back, to be pending again, with a growing pause
// (rules.PauseLeft). Reads must first prove that the missing objects are missing.
func Interruption(t *ledger.Ticket, v rules.Verdict, missing []ledger.TicketVolume, now time.Time) Task {
	task := Task{Ticket: t, Commit: decide(t, ledger.TicketPending, v)}
	if WithoutNode(v) {
		task.Proofs = append(task.Proofs, read(Nodes, string(t.Node)))
	}
	for _, m := range missing {
		if m.Claim != "" {
			task.Proofs = append(task.Proofs, read(Claims, ledger.ClaimKey{Namespace: t.ID.Namespace, Name: m.Claim}.String()))
		} else if m.PersistentVolume != "" {
			task.Proofs = append(task.Proofs, read(PersistentVolumes, m.PersistentVolume))
		}
	}
	if v.First().Code == rules.Outranked {
		task.Commit.Interruptions++
		if t.SatisfiedSince != 0 && now.Sub(time.Unix(t.SatisfiedSince, 0)) >= satisfiedForLong {
			task.Commit.Interruptions = 1
		}
	}
	return task
}

// Ending is the task that ends a ticket, which counts until the object is gone. Without finalizers that is
// when the deletion is answered.
func Ending(t *ledger.Ticket) Task {
	return Task{Ticket: t, Commit: Request{Kind: rules.DeleteTicket, Key: t.ID.String(), UID: t.UID, Version: t.Version}}
}

// EndOf is the task that ends a ticket because of its node's state. A read of the Node must prove it:
// the watch may be behind.
func EndOf(t *ledger.Ticket, cause rules.EndCause) Task {
	return Ending(t).because(cause)
}

// because adds a read of a ticket's node that must prove why the task is due.
func (t Task) because(cause rules.EndCause) Task {
	t.Proofs, t.Cause = append(t.Proofs, read(Nodes, string(t.Ticket.Node))), cause
	return t
}

// proves says whether a read of a ticket's node shows why the ticket ends or moves.
func (t Task) proves(a Answer) bool {
	n, exists := first[ledger.NodeState](a)
	switch t.Cause {
	case rules.EndNodeDeleted:
		return a.Result == NotFound
	case rules.EndNodeCordoned:
		return exists && n.Draining
	case rules.EndTimeOver: // not because of its node
	}
	return false
}

func decide(t *ledger.Ticket, phase ledger.TicketPhase, v rules.Verdict) Request {
	r := Request{Kind: rules.DecideTicket, Key: t.ID.String(), UID: t.UID, Version: t.Version, Phase: phase, Verdict: v, Epoch: t.Epoch, Interruptions: t.Interruptions}
	if phase == ledger.TicketGranted {
		r.Granted = t.Granted
	}
	return r
}

// advance makes the next request of a task about a ticket, or of a take-over.
func (m *Memory) advance(t Task, s ledger.Snapshot) (Task, Move) {
	switch {
	case t.TookOver:
		return m.tookOverNow(t)
	case t.Sent.Kind == rules.DecideTicket: // unanswered, and outlasted
		t.Outlasted = true
		return t.send(read(Tickets, t.Sent.Key))
	case t.grants() && !granting(s, t.Ticket):
		return t.end(Stale, fmt.Sprintf("ticket %s is not as it was decided on", t.Ticket.ID))
	case len(t.Proofs) > 0:
		return t.send(t.Proofs[0])
	}
	if t.Commit.Kind == rules.DecideTicket {
		if now := s.Ticket(t.Ticket.ID); now == nil || now.Version != t.Ticket.Version {
			return t.end(Stale, fmt.Sprintf("ticket %s has another version", t.Ticket.ID))
		}
		t.Commit.Epoch = max(t.Commit.Epoch, m.Epoch)
	}
	return t.send(t.Commit)
}

// ticketAnswered follows the requests of a task about a ticket, or of a
// take-over.
func (m *Memory) ticketAnswered(t Task, a Answer, s ledger.Snapshot, now time.Time) (Task, Move) {
	switch t.Sent.Kind {
	case rules.GetObject:
		if t.grants() && t.Outlasted && a.Result != Done && a.Result != NotFound {
			return t.fail(a, ledger.TicketInDoubt{ID: t.Ticket.ID, UID: t.Ticket.UID}) // unknown outcome
		}
		if t.Sent.Object == Tickets {
			return t.reread(a)
		}
		if t.Commit.Kind == rules.GetObject {
			return m.nodeAnswered(t, a, s)
		}
		return m.missingAnswered(t, a, s)
	case rules.ListObjects:
		return m.listAnswered(t, a)
	case rules.DeleteTicket:
		switch a.Result {
		case Done:
			if t.Ticket.Finalizers {
				// Only its deletion is pending. It counts until a read or the watch shows it gone.
				return t.end(Finished, "")
			}
			return t.end(Finished, "", ledger.TicketReleased{ID: t.Ticket.ID, UID: t.Ticket.UID})
		case NotFound:
			return t.end(Finished, "", ledger.TicketReleased{ID: t.Ticket.ID, UID: t.Ticket.UID})
		case Conflict:
			return t.send(read(Tickets, t.Sent.Key))
		default:
			return t.fail(a)
		}
	default:
		return m.decideAnswered(t, a, now)
	}
}

// granting says whether the ledger knows that this version of a ticket is about to be granted.
func granting(s ledger.Snapshot, t *ledger.Ticket) bool {
	now := s.Ticket(t.ID)
	return now != nil && now.Granting && now.UID == t.UID && now.Version == t.Version
}

// decideAnswered: nothing else is granted at the node until a grant's outcome is known.
func (m *Memory) decideAnswered(t Task, a Answer, now time.Time) (Task, Move) {
	switch a.Result {
	case Done:
		return t.end(Finished, "")
	case NotFound:
		return t.end(Stale, fmt.Sprintf("ticket %s is gone", t.Ticket.ID))
	case Conflict:
		return t.send(read(Tickets, t.Sent.Key))
	case Unknown:
		return m.outlast(t, now)
	default:
		return t.fail(a)
	}
}

// missingAnswered: an existing object makes the decision stale.
func (m *Memory) missingAnswered(t Task, a Answer, s ledger.Snapshot) (Task, Move) {
	if a.Result != Done && a.Result != NotFound {
		return t.fail(a)
	}
	if t.Cause != "" && t.Sent.Object == Nodes {
		return m.nodeProved(t, a, s)
	}
	if t.found(a, s) {
		return t.end(Stale, fmt.Sprintf("%s %s of ticket %s is there", t.Sent.Object, t.Sent.Key, t.Ticket.ID))
	}
	t.Proofs = t.Proofs[1:]
	return m.advance(t, s)
}

// nodeProved: without the proof nothing is written, and the ticket is decided again.
func (m *Memory) nodeProved(t Task, a Answer, s ledger.Snapshot) (Task, Move) {
	if !t.proves(a) {
		return t.end(Stale, fmt.Sprintf("ticket %s stays (%s): node %s is not as it was known to be", t.Ticket.ID, t.Cause, t.Sent.Key))
	}
	t.Proofs = t.Proofs[1:]
	return m.advance(t, s)
}

// found is false for a PersistentVolume of another claim.
func (t Task) found(a Answer, s ledger.Snapshot) bool {
	if claim, ok := first[ledger.Claim](a); ok {
		return slices.ContainsFunc(t.Ticket.Volumes, func(v ledger.TicketVolume) bool {
			return v.Claim == claim.Key.Name && (v.ClaimUID == "" || v.ClaimUID == claim.UID)
		})
	}
	if pv, ok := first[ledger.PersistentVolume](a); ok {
		return slices.ContainsFunc(t.Ticket.Volumes, func(v ledger.TicketVolume) bool {
			c := s.Claim(ledger.ClaimKey{Namespace: t.Ticket.ID.Namespace, Name: v.Claim})
			return c != nil && c.PersistentVolume == pv.Name && !pv.IsAnothers(*c)
		})
	}
	return a.Result == Done
}
