// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// MaxWaiting is how many tickets of one namespace are decided on at a node at a time: those
// that rank first. A node has room for fewer volumes than that. Whoever may make tickets makes as many as they like, and each
// change at the node has all of them decided on; so the others wait until some of these
// are granted or gone, and until then count as those that rank last.
//
// A ticket counts as several if its volumes have more than usualLooks users together, since
// the decision on it looks at each user.
const (
	MaxWaiting = 256
	usualLooks = 256
)

// Queue is the pending tickets of a node, for decisions on the same facts. They are decided
// on in the order of their rank, each once, so that these decisions agree with each other,
// and together cost little more than in proportion to the tickets. Not safe for parallel
// use.
type Queue struct {
	arbiter  Arbiter
	snapshot ledger.Snapshot
	node     ledger.NodeName
	now      time.Time
	line     *Line

	tickets []*ledger.Ticket             // in the order of their rank
	looks   int                          // see Looks
	ranks   []Request                    // theirs
	behind  map[ledger.TicketID]bool     // those that MaxWaiting leaves out
	decided map[ledger.TicketID]decision // on the first of them
	next    int                          // how many these are
	served  int                          // how many pods of the line rank before these
	keeping []*Waiter                    // those of them for which slots are kept here

	waitsElsewhere bool // see WaitsElsewhere

	slots     slots
	elsewhere map[ledger.VolumeID]awaiting  // see keptElsewhere, as it is needed
	users     map[*ledger.NodeVolume]ranked // of NodeVolumes with many users, as they are needed
	weights   map[ledger.VolumeID]int       // filled by weight
}

// WaitsElsewhere says whether the decisions so far let a ticket wait for a ticket at another node, which
// may lose its chance without an event that concerns this node.
func (q *Queue) WaitsElsewhere() bool { return q.waitsElsewhere }

// decision is what Grant says of a ticket.
type decision struct {
	verdict Verdict
	gets    bool // it is granted, or will be as soon as it is known that another one is not
}

// ranked is the users of a NodeVolume: first those that are more than tickets which are
// not granted, then those of these that contend, in the order of their rank.
type ranked struct {
	users  []ledger.User
	asking []Request
}

// Queue returns the pending tickets of a node, where no pod waits.
func (a Arbiter) Queue(s ledger.Snapshot, n ledger.NodeName, now time.Time) *Queue {
	return a.Line(s, nil, now).At(n)
}

func (l *Line) queue(n ledger.NodeName) *Queue {
	s := l.snapshot
	q := &Queue{
		arbiter: l.arbiter, snapshot: s, node: n, now: l.now, line: l, decided: map[ledger.TicketID]decision{},
		elsewhere: map[ledger.VolumeID]awaiting{}, users: map[*ledger.NodeVolume]ranked{}, weights: map[ledger.VolumeID]int{},
	}
	if node := s.Node(n); node != nil {
		q.rank(node)
		q.leave(node)
	}
	return q
}

// Tickets lists the pending tickets: who ranks first comes first, so that nobody is
// refused for the sake of one who is refused after him.
func (q *Queue) Tickets() []*ledger.Ticket { return q.tickets }

// Looks returns how many users of volumes the decisions have compared with those who ask, since
// most of the cost of a round is there.
func (q *Queue) Looks() int { return q.looks }

func (q *Queue) look() {
	if q != nil {
		q.looks++
	}
}

// rank sorts the tickets, and leaves out those that are too many of a namespace. A ticket whose grant was sent
// counts as granted, and asks no more.
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

// weight is at how many users, and places without any that matter, a decision on a ticket may
// look.
func (q *Queue) weight(t *ledger.Ticket) int {
	sum := 0
	for _, id := range q.snapshot.TicketAt(t.ID) {
		weight, known := q.weights[id]
		if v := q.snapshot.Volume(id); !known && v != nil {
			for i := range v.NodeVolumes {
				if weight++; !v.NodeVolumes[i].OnlyAsked {
					weight += len(v.NodeVolumes[i].Users)
				}
			}
			q.weights[id] = weight
		}
		sum += weight
	}
	return sum
}

// fewUsers is up to how many users of a NodeVolume are looked at as they come, and of
// how many tickets a verdict says at most that they keep a volume.
const fewUsers = 16

// blockers are the users of a NodeVolume that may keep a volume from a request. Of the
// tickets that rank before it and contend, the first few are enough.
func (q *Queue) blockers(p *ledger.NodeVolume, r Request) []ledger.User {
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

func (q *Queue) ranked(p *ledger.NodeVolume) ranked {
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

// Grant decides on a whole ticket of the queue: all of its volumes, or none. See
// Arbiter.Grant.
func (q *Queue) Grant(t *ledger.Ticket) Verdict {
	verdict, _ := q.decision(t)
	return verdict
}

func (q *Queue) decision(t *ledger.Ticket) (v Verdict, gets bool) {
	rank := ticketAsks(t)
	for ; q.next < len(q.tickets) && CompareRequests(q.ranks[q.next], rank) <= 0; q.next++ {
		q.keepForPods(q.ranks[q.next])
		if before := q.tickets[q.next]; !before.InDoubt { // one in doubt has its slots, as if it were granted
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

// handOut decides on a ticket, and hands out what it gets to it.
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

// decide decides on a ticket, for which those that rank before have been decided on.
func (q *Queue) decide(t *ledger.Ticket, r Request) decision {
	a, s := q.arbiter, q.snapshot
	w := view{arbiter: a, snapshot: s, request: r, node: t.Node, now: q.now, queue: q}
	if lost := w.fenced(); len(lost) > 0 {
		return decision{verdict: refuse(lost)} // before all else: whoever waits for this ticket to give way sees that it has
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
		// Without a node nothing else that waits says anything new.
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
		return decision{verdict: refuse(before)} // Keeps would take the grant back at once
	}
	verdict = q.committed(r, t)
	if verdict.Allowed() {
		verdict = q.first(w)
	}
	// Who waits only until it is known whether another ticket is granted has its slots meanwhile.
	return decision{verdict: verdict, gets: verdict.Allowed() || verdict.First().Code == NotGranted}
}

// outranked says to whom a ticket that yields would lose a volume as soon as it is granted: the
// volume is at its node for others, who have the time of their notice, and then goes elsewhere.
func (q *Queue) outranked(t *ledger.Ticket, r Request) []Reason {
	if !t.Type.Yields() {
		return nil
	}
	for _, need := range r.Needs {
		v := q.snapshot.Volume(need.Volume)
		if v == nil || v.Hold == nil && exclusive(access(q.snapshot, v, need.Access)) {
			continue
		}
		p := q.arbiter.planner(q.snapshot, v, q.now)
		if at, who := p.firstOutranker(ledger.User{Ticket: t.ID}, t.Node); at != "" && p.required {
			return []Reason{{Code: Outranked, Volume: v.ID, Claim: need.Name, Node: at, Who: who}}
		}
	}
	return nil
}

// committed says why a ticket is not granted a volume that nobody who counts claims: a leader before may have granted
// it elsewhere, or the hold will give it to another node.
func (q *Queue) committed(r Request, t *ledger.Ticket) Verdict {
	s := q.snapshot
	granted := s.With(&ledger.Delta{Granted: t.ID})
	for _, need := range r.Needs {
		v := s.Volume(need.Volume)
		if v == nil || !s.AttachRequired(v.ID.Driver) {
			continue
		}
		w := view{arbiter: q.arbiter, snapshot: s, request: r, node: t.Node, now: q.now}
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
