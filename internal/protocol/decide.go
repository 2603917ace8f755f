// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Ruling is the outcome for a pending ticket.
type Ruling uint8

// The rulings on a ticket.
const (
	Wait Ruling = iota // stays pending, with a reason
	Grant
)

// Decision is a ruling with its details.
type Decision struct {
	Ruling  Ruling
	Verdict rules.Verdict
	// Volumes, with Grant, are the decided volumes.
	Volumes []ledger.VolumeID
}

// Rule decides on a pending ticket.
func Rule(a rules.Arbiter, s ledger.Snapshot, t *ledger.Ticket, now time.Time) Decision {
	return rule(a.Queue(s, t.Node, now), s, t)
}

func rule(q *rules.Queue, s ledger.Snapshot, t *ledger.Ticket) Decision {
	verdict := q.Grant(t)
	d := Decision{Ruling: Wait, Verdict: verdict}
	if verdict.Allowed() {
		d.Ruling, d.Volumes = Grant, slices.Clone(s.TicketAt(t.ID))
	}
	return d
}

// Decided is a ticket with its decision.
type Decided struct {
	Ticket *ledger.Ticket
	Decision
}

// Round decides on all pending tickets of a queue on the same facts; with before, only on the tickets for
// which before returns true. The writes may run in parallel without taking a slot twice, because each
// ticket counts earlier tickets as decided. If a write fails, the other decisions hold, and its ticket is
// decided again. Round omits tickets in doubt, which count until they are taken over; tickets told that
// they are too many; tickets interrupted lately (Resumes); and paused tickets (paused nil: none).
func Round(q *rules.Queue, s ledger.Snapshot, now time.Time, paused Paused, before func(*ledger.Ticket) bool) (list []Decided) {
	for _, t := range q.Tickets() {
		if t.InDoubt || rules.PauseLeft(s, t, now) > 0 || paused.left(t) > 0 || before != nil && !before(t) {
			continue
		}
		d := rule(q, s, t)
		if d.Verdict.First().Code == rules.TooManyTickets && t.Reason == string(rules.TooManyTickets) {
			continue
		}
		list = append(list, Decided{t, d})
	}
	return list
}

// Paused returns how long to leave a ticket alone; 0: don't.
type Paused func(*ledger.Ticket) time.Duration

func (p Paused) left(t *ledger.Ticket) time.Duration {
	if p == nil {
		return 0
	}
	return p(t)
}

// Resumes is the time until a node's interrupted or paused pending ticket can be decided on; 0: none.
func Resumes(s ledger.Snapshot, n ledger.NodeName, now time.Time, paused Paused) time.Duration {
	node, first := s.Node(n), time.Duration(0)
	if node == nil {
		return 0
	}
	for _, id := range node.Tickets {
		t := s.Ticket(id)
		first = Sooner(first, rules.PauseLeft(s, t, now))
		if t != nil && t.Phase == ledger.TicketPending {
			first = Sooner(first, paused.left(t))
		}
	}
	return first
}

// Due is the due task for a ticket, apart from its decision; false: none. A ticket in doubt is taken over
// (Renew). A grant that must not last (keeps) is taken back.
func Due(a rules.Arbiter, s ledger.Snapshot, t *ledger.Ticket, keeps rules.Verdict, now time.Time) (Task, bool) {
	switch {
	case t.InDoubt:
		return Renew(t), true
	case t.Granting:
		return Task{}, false
	case t.Phase != ledger.TicketGranted:
		return place(a, s, t, now)
	}
	return interrupt(s, t, keeps, now)
}

// place is a new node for a waiting ticket that leaves it to Moorage, or the reason why there is none.
func place(a rules.Arbiter, s ledger.Snapshot, t *ledger.Ticket, now time.Time) (Task, bool) {
	if !t.Wherever || t.Phase != ledger.TicketPending || rules.PauseLeft(s, t, now) > 0 {
		return Task{}, false
	}
	n, v := a.Place(s, t, now)
	task := Task{Ticket: t, Commit: decide(t, ledger.TicketPending, v)}
	if n == t.Node {
		return task, n == "" && t.Reason != string(v.First().Code) // else its node's queue gives the reason
	}
	task.Commit.Node = n
	return task, true
}

// interrupt: a ticket that has to yield, or to leave its node (onDrain: Move), is first asked to let go
// (condition Yielding). It loses its grant when it has, or at the end of its time. Meanwhile the claimant
// is promised the volumes, and nothing is detached: a granted ticket counts as use. If the claimant goes,
// the same time goes on: a retried pod does not restart it. A ticket that has let go is no longer asked:
// the volumes are its own again.
func interrupt(s ledger.Snapshot, t *ledger.Ticket, v rules.Verdict, now time.Time) (Task, bool) {
	if v.Allowed() {
		return ask(t, v, time.Time{}), t.YieldingSince != 0 && (t.LetsGo || !rules.Asked(t, now))
	}
	if slices.ContainsFunc(v.Reasons, func(r rules.Reason) bool { return r.Code != rules.Outranked && r.Code != rules.LeavesNode }) {
		return Interruption(t, v, Missing(s, t), now), true
	}
	switch {
	case rules.OnNotice(t, now):
		return Task{}, false
	case rules.YieldNotice(t) > 0 && !t.LetsGo && (t.YieldingSince == 0 || rules.NoticeLeft(t, now) > 0):
		return ask(t, v, now), true
	}
	task := Interruption(t, v, Missing(s, t), now)
	if cause := rules.MovesFor(s, t, now); cause != "" && !slices.ContainsFunc(v.Reasons, func(r rules.Reason) bool { return r.Code != rules.LeavesNode }) {
		task = task.because(cause) // the watch may be behind
	}
	return task, true
}

// ask at no time ends the request. The notice begins with the next whole second, a condition's unit: it is
// never shorter than stated, and no two requests begin in the same second.
func ask(t *ledger.Ticket, v rules.Verdict, now time.Time) Task {
	task := Task{Ticket: t, Commit: decide(t, ledger.TicketGranted, v)}
	if !now.IsZero() {
		task.Commit.YieldingSince = now.Add(time.Second - 1).Unix()
	}
	return task
}

// Missing lists a ticket's volumes that lead nowhere or to another claim's PersistentVolume. An informer
// may be behind: a grant is taken back only after a consistent read says the same.
func Missing(s ledger.Snapshot, t *ledger.Ticket) []ledger.TicketVolume {
	var list []ledger.TicketVolume
	for _, v := range t.Volumes {
		switch _, link := s.ResolveTicket(t, v); link {
		case ledger.LinkMissing:
			list = append(list, v)
		case ledger.LinkLost:
			if c := s.Claim(ledger.ClaimKey{Namespace: t.ID.Namespace, Name: v.Claim}); c != nil && !c.Lost {
				list = append(list, ledger.TicketVolume{PersistentVolume: c.PersistentVolume})
			}
		case ledger.LinkVolume, ledger.LinkUnbound, ledger.LinkNone, ledger.LinkUnseen, ledger.LinkOutside:
		}
	}
	return list
}

// WithoutNode says whether a verdict takes a ticket's node for missing: an informer may be behind.
func WithoutNode(v rules.Verdict) bool {
	return slices.ContainsFunc(v.Reasons, func(r rules.Reason) bool { return r.Code == rules.NodeMissing })
}
