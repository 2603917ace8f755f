// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// MaxWaiting is the number of tickets of one namespace that are decided on at a node at a time, the first
// in rank. Each change at the node decides on all of them: the rest of a tenant's tickets wait, and rank
// last.
//
// A ticket counts as several if its volumes have more than usualLooks users together.
const (
	MaxWaiting = 256
	usualLooks = 256
)

// Queue holds the pending tickets of a node. It decides on each once, by rank and on the same facts, at a
// cost about proportional to the tickets. Not safe for parallel use.
type Queue struct {
	arbiter  Arbiter
	snapshot ledger.Snapshot
	node     ledger.NodeName
	now      time.Time
	line     *Line

	tickets []*ledger.Ticket             // by rank
	looks   int                          // see Looks
	ranks   []Request                    // of the tickets
	behind  map[ledger.TicketID]bool     // beyond MaxWaiting
	decided map[ledger.TicketID]decision // on the first tickets
	next    int                          // the number of decided tickets
	served  int                          // the pods of the line before these
	keeping []*Waiter                    // the pods with slots kept here

	waitsElsewhere bool // see WaitsElsewhere

	slots     slots
	elsewhere map[ledger.VolumeID]awaiting    // filled on demand
	users     map[*ledger.VolumeOnNode]ranked // of VolumeOnNodes with many users, filled on demand
	weights   map[ledger.VolumeID]int         // filled by weight
}

// WaitsElsewhere says whether a ticket waits for a ticket at another node. No event may come here for that.
func (q *Queue) WaitsElsewhere() bool { return q.waitsElsewhere }

// decision is the verdict of Grant on a ticket.
type decision struct {
	verdict Verdict
	gets    bool // granted, or if another ticket fails
}

// ranked has users other than pending tickets first, then the contending tickets by rank.
type ranked struct {
	users  []ledger.User
	asking []Request
}

// Queue returns the pending tickets of a node, without waiting pods.
func (a Arbiter) Queue(s ledger.Snapshot, n ledger.NodeName, now time.Time) *Queue {
	return a.Line(s, nil, now).At(n)
}

func (l *Line) queue(n ledger.NodeName) *Queue {
	s := l.snapshot
	q := &Queue{
		arbiter: l.arbiter, snapshot: s, node: n, now: l.now, line: l, decided: map[ledger.TicketID]decision{},
		elsewhere: map[ledger.VolumeID]awaiting{}, users: map[*ledger.VolumeOnNode]ranked{}, weights: map[ledger.VolumeID]int{},
	}
	if node := s.Node(n); node != nil {
		q.rank(node)
		q.leave(node)
	}
	return q
}

// Tickets lists the pending tickets by rank.
func (q *Queue) Tickets() []*ledger.Ticket { return q.tickets }

// Looks returns the comparisons of users with requests: the main cost of a round.
func (q *Queue) Looks() int { return q.looks }

func (q *Queue) look() {
	if q != nil {
		q.looks++
	}
}

// rank leaves out tickets beyond a namespace's limit. A ticket with a sent grant counts as granted.
func (q *Queue) rank(node *ledger.Node) {
	q.ranks = make([]Request, 0, len(node.Tickets))
	for _, id := range node.Tickets {
		if !q.snapshot.Ticket(id).Granting {
			q.ranks = append(q.ranks, requestOf(q.snapshot, ledger.User{Ticket: id}))
		}
	}
	slices.SortFunc(q.ranks, CompareRequests)
	looks := map[string]int{} // by namespace
	q.behind = map[ledger.TicketID]bool{}
	for _, r := range q.ranks {
		t := q.snapshot.Ticket(r.Ticket)
		q.tickets = append(q.tickets, t)
		of := t.ID.Namespace
		switch {
		case t.InDoubt: // not decided on
		case looks[of] < MaxWaiting*usualLooks:
			looks[of] += max(usualLooks, q.weight(t))
		default:
			q.behind[t.ID] = true
		}
	}
}

// weight counts the users, and places without relevant users, for a decision.
func (q *Queue) weight(t *ledger.Ticket) int {
	sum := 0
	for _, id := range q.snapshot.TicketAt(t.ID) {
		weight, known := q.weights[id]
		if v := q.snapshot.Volume(id); !known && v != nil {
			for i := range v.OnNodes {
				if weight++; !v.OnNodes[i].OnlyAsked {
					weight += len(v.OnNodes[i].Users)
				}
			}
			q.weights[id] = weight
		}
		sum += weight
	}
	return sum
}

// fewUsers is the number of users that are checked in any order, and the most tickets that a verdict names
// as keeping a volume.
const fewUsers = 16

// blockers may keep a volume from a request. A few of the contending tickets before it are enough.
func (q *Queue) blockers(p *ledger.VolumeOnNode, r Request) []ledger.User {
	if q == nil || len(p.Users) <= fewUsers {
		return p.Users
	}
	known, found := q.users[p]
	if !found {
		known = q.ranked(p)
		q.users[p] = known
	}
	before, _ := slices.BinarySearchFunc(known.asking, r, CompareRequests)
	return known.users[:len(known.users)-len(known.asking)+min(before, fewUsers)]
}

func (q *Queue) ranked(p *ledger.VolumeOnNode) ranked {
	var k ranked
	for _, u := range p.Users {
		switch claimStateOf(q.snapshot, u) {
		case noClaim:
		case requested:
			if t := q.snapshot.Ticket(u.Ticket); mayBeGranted(t) {
				k.users = append(k.users, u)
			} else if contends(t) {
				k.asking = append(k.asking, requestOf(q.snapshot, u))
			}
		default:
			k.users = append(k.users, u)
		}
	}
	slices.SortFunc(k.asking, CompareRequests)
	for _, r := range k.asking {
		k.users = append(k.users, ledger.User{Ticket: r.Ticket})
	}
	return k
}

// Grant decides on a whole ticket, all volumes or none; see Arbiter.Grant.
func (q *Queue) Grant(t *ledger.Ticket) Verdict {
	verdict, _ := q.decision(t)
	return verdict
}

func (q *Queue) decision(t *ledger.Ticket) (v Verdict, gets bool) {
	rank := ticketAsks(t)
	for ; q.next < len(q.tickets) && CompareRequests(q.ranks[q.next], rank) <= 0; q.next++ {
		q.keepForPods(q.ranks[q.next])
		if before := q.tickets[q.next]; !before.InDoubt { // a ticket in doubt has its slots
			q.handOut(before)
		}
	}
	d, decided := q.decided[t.ID]
	if !decided {
		q.keepForPods(rank)
		d = q.decide(t, TicketRequest(q.snapshot, t))
	}
	return d.verdict, d.gets
}

// handOut decides on a ticket, and hands out its slots.
func (q *Queue) handOut(t *ledger.Ticket) {
	r := ticketAsks(t)
	if !q.behind[t.ID] { // a ticket that is left out needs nothing yet
		r = TicketRequest(q.snapshot, t)
	}
	d := q.decide(t, r)
	q.decided[t.ID] = d
	switch {
	case d.gets:
		q.give(r)
	case d.verdict.First().Code == NoFreeSlot && !t.Type.Yields():
		q.keep(r)
	}
}

// decide decides on a ticket after all earlier ones.
func (q *Queue) decide(t *ledger.Ticket, r Request) decision {
	a, s := q.arbiter, q.snapshot
	w := evaluation{arbiter: a, snapshot: s, request: r, node: t.Node, now: q.now, queue: q}
	if lost := w.fenced(); len(lost) > 0 {
		return decision{verdict: refuse(lost)} // first: waiters for this ticket see that it has yielded
	}
	if away := leaves(s, t, q.now); len(away) > 0 {
		return decision{verdict: refuse(away)}
	}
	if PauseLeft(s, t, q.now) > 0 {
		return decision{verdict: refuse([]Reason{{Code: Outranked, Node: t.Node}})}
	}
	if q.behind[t.ID] {
		return decision{verdict: refuse([]Reason{{Code: TooManyTickets, Node: t.Node, Limit: MaxWaiting}})}
	}
	verdict := w.judge(nil)
	if node := s.Node(t.Node); t.Node != ledger.Detached && (node == nil || !node.Exists) {
		// Without a node, other waiting reasons add nothing.
		reasons := slices.DeleteFunc(slices.Clone(verdict.Reasons), func(r Reason) bool { return outcomeOf(r.Code) == Wait })
		verdict = refuse(append(reasons, Reason{Code: NodeMissing, Node: t.Node}))
	}
	if !verdict.Allowed() {
		q.keptSlots(verdict)
		return decision{verdict: q.slotsLast(t, r, verdict)}
	}
	if early := neverAttached(s, t); len(early) > 0 {
		return decision{verdict: refuse(early)}
	}
	if before := q.outranked(t, r); len(before) > 0 {
		return decision{verdict: refuse(before)} // Keeps would take the grant back
	}
	verdict = q.committed(r, t)
	if verdict.Allowed() {
		verdict = q.first(w)
	}
	// A ticket that waits only for another ticket's decision has its slots.
	return decision{verdict: verdict, gets: verdict.Allowed() || verdict.First().Code == NotGranted}
}

// outranked lists the users to which a yielding ticket would lose a volume right after its grant: it is at
// its node for others during their notice.
func (q *Queue) outranked(t *ledger.Ticket, r Request) []Reason {
	if !t.Type.Yields() {
		return nil
	}
	for _, need := range r.Needs {
		v := q.snapshot.Volume(need.Volume)
		if v == nil {
			continue
		}
		p := q.arbiter.planner(q.snapshot, v, q.now)
		if at, who := p.firstOutranker(ledger.User{Ticket: t.ID}, t.Node); at != "" && p.required {
			return []Reason{{Code: Outranked, Volume: v.ID, Claim: need.Name, Node: at, Who: who}}
		}
	}
	return nil
}

// committed refuses a volume that an earlier leader may have granted elsewhere, or that the hold will give
// to another node.
func (q *Queue) committed(r Request, t *ledger.Ticket) Verdict {
	s := q.snapshot
	granted := s.With(&ledger.Delta{Granted: t.ID})
	for _, need := range r.Needs {
		v := s.Volume(need.Volume)
		if v == nil || !s.AttachRequired(v.ID.Driver) {
			continue
		}
		w := evaluation{arbiter: q.arbiter, snapshot: s, request: r, node: t.Node, now: q.now}
		if reason, doubted := w.doubted(v, need); doubted {
			return refuse([]Reason{reason})
		}
		if p := q.arbiter.planner(granted, v, q.now); p.exclusive && v.ID.IsReal() {
			if reason, kept := p.heldBack(r, t.Node, need.Name); kept {
				return refuse([]Reason{reason}).SeenFrom(r.Who.Namespace)
			}
		}
	}
	return allow()
}
