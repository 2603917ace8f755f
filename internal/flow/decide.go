// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Ruling is what becomes of a pending ticket.
type Ruling uint8

// The rulings on a ticket.
const (
	Wait Ruling = iota // stays pending, with the reason on it
	Grant
)

// Decision is a ruling with what belongs to it.
type Decision struct {
	Ruling  Ruling
	Verdict arbiter.Verdict
	// Volumes, with Grant, are those that were decided on.
	Volumes []ledger.VolumeID
}

// Rule decides on a pending ticket.
func Rule(a arbiter.Arbiter, s ledger.Snapshot, t *ledger.Ticket, now time.Time) Decision {
	return rule(a.Queue(s, t.Node, now), s, t)
}

func rule(q *arbiter.Queue, s ledger.Snapshot, t *ledger.Ticket) Decision {
	verdict := q.Grant(t)
	d := Decision{Ruling: Wait, Verdict: verdict}
	if verdict.Allowed() {
		d.Ruling, d.Volumes = Grant, slices.Clone(s.TicketAt(t.ID))
	}
	return d
}

// Decided is a ticket, and what becomes of it.
type Decided struct {
	Ticket *ledger.Ticket
	Decision
}

// Round decides on all pending tickets of a queue on the same facts, or on those only of which before, if set, says so. What
// follows may be written side by side: that takes no slot twice, because to each ticket those that rank
// before it count as they are decided on here. Where one of
// these writes fails, the others hold all the same, and its ticket is decided on anew. A ticket in doubt is
// left out: it counts, and is decided once it is taken over. So is one that has been told
// that it is one of too many, and one that was interrupted lately (Resumes), or of which paused says
// for how long it is left alone; nil: none.
func Round(q *arbiter.Queue, s ledger.Snapshot, now time.Time, paused Paused, before func(*ledger.Ticket) bool) (list []Decided) {
	for _, t := range q.Tickets() {
		if t.InDoubt || arbiter.PauseLeft(s, t, now) > 0 || paused.left(t) > 0 || before != nil && !before(t) {
			continue
		}
		d := rule(q, s, t)
		if d.Verdict.First().Code == arbiter.TooManyTickets && t.Reason == string(arbiter.TooManyTickets) {
			continue
		}
		list = append(list, Decided{t, d})
	}
	return list
}

// Paused says for how long a ticket is left alone, 0: it is not.
type Paused func(*ledger.Ticket) time.Duration

func (p Paused) left(t *ledger.Ticket) time.Duration {
	if p == nil {
		return 0
	}
	return p(t)
}

// Resumes is after which time a pending ticket of a node that was interrupted, or is left alone, is to
// be decided on again; 0: there is none.
func Resumes(s ledger.Snapshot, n ledger.NodeName, now time.Time, paused Paused) time.Duration {
	node, first := s.Node(n), time.Duration(0)
	if node == nil {
		return 0
	}
	for _, id := range node.Tickets {
		t := s.Ticket(id)
		first = Sooner(first, arbiter.PauseLeft(s, t, now))
		if t != nil && t.Phase == ledger.TicketPending {
			first = Sooner(first, paused.left(t))
		}
	}
	return first
}

// Due is what is to be done about a ticket, apart from deciding on it; false: nothing. One in
// doubt is taken over (Renew). A grant that must not last is taken back, and the ticket asks on. keeps says whether
// a granted ticket may keep its grant.
func Due(a arbiter.Arbiter, s ledger.Snapshot, t *ledger.Ticket, keeps arbiter.Verdict, now time.Time) (Task, bool) {
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

// place is what is due about a ticket that waits and leaves its node to Moorage: one is
// chosen for it, or another one, and it waits there; or it is told why there is none.
func place(a arbiter.Arbiter, s ledger.Snapshot, t *ledger.Ticket, now time.Time) (Task, bool) {
	if !t.Wherever || t.Phase != ledger.TicketPending || arbiter.PauseLeft(s, t, now) > 0 {
		return Task{}, false
	}
	n, v := a.Place(s, t, now)
	task := Task{Ticket: t, Commit: decide(t, ledger.TicketPending, v)}
	if n == t.Node {
		return task, n == "" && t.Reason != string(v.First().Code) // else its node's queue says why it waits
	}
	task.Commit.Node = n
	return task, true
}

// interrupt is what is due about a granted ticket. One that has to give its
// volumes to somebody who ranks before, or to leave its node (onDrain: Move), is asked first to let go of them (condition Yielding), and
// loses its grant when it has, or its time is over. Who wants them is promised them meanwhile,
// and nothing is detached: a ticket that has its grant is in use. Where nobody wants them any
// more, it is asked until its time is over, and then no longer: a pod that is tried again and
// again does not begin that time anew. Who has let go is asked no longer at once: nobody uses the
// volumes, and they are its own again.
func interrupt(s ledger.Snapshot, t *ledger.Ticket, v arbiter.Verdict, now time.Time) (Task, bool) {
	if v.Allowed() {
		return ask(t, v, 0, time.Time{}), t.YieldingSince != 0 && (t.LetsGo || !arbiter.Asked(s, t, now))
	}
	if slices.ContainsFunc(v.Reasons, func(r arbiter.Reason) bool { return r.Code != arbiter.Outranked && r.Code != arbiter.LeavesNode }) {
		return Interruption(t, v, Missing(s, t), now), true
	}
	notice := arbiter.YieldNotice(s, t)
	switch {
	case arbiter.OnNotice(s, t, now):
		return Task{}, false
	case notice > 0 && !t.LetsGo && (t.YieldingSince == 0 || arbiter.NoticeLeft(s, t, now) > 0): //mutant:take-unasked
		return ask(t, v, notice, now), true
	}
	task := Interruption(t, v, Missing(s, t), now)
	if cause := arbiter.MovesFor(s, t, now); cause != "" && !slices.ContainsFunc(v.Reasons, func(r arbiter.Reason) bool { return r.Code != arbiter.LeavesNode }) {
		task = task.because(s, cause) // the watch may be behind
	}
	return task, true
}

// ask is the task that asks a granted ticket to let go of its volumes within a time; without one
// it is asked no longer. The time begins with the next whole second, as a condition has no others:
// so it is not shorter than it says, and no two questions begin in the same second.
func ask(t *ledger.Ticket, v arbiter.Verdict, notice time.Duration, now time.Time) Task {
	task := Task{Ticket: t, Commit: decide(t, ledger.TicketGranted, v)}
	if notice > 0 {
		task.Commit.YieldingSince, task.Commit.Notice = now.Add(time.Second-1).Unix(), notice
	}
	return task
}

// Missing lists the volumes of a ticket that lead nowhere, and the PersistentVolumes that are
// another claim's though a claim of the ticket is bound to them. That a ticket names
// them says that whoever wrote it has seen them, and an informer here may be
// behind: a PersistentVolume that is used again may be seen as it was before. No grant
// is taken back before a consistent read says the same.
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

// WithoutNode says whether a verdict takes a ticket's node for missing: that, too,
// may be what an informer has not shown yet.
func WithoutNode(v arbiter.Verdict) bool {
	return slices.ContainsFunc(v.Reasons, func(r arbiter.Reason) bool { return r.Code == arbiter.NodeMissing })
}
