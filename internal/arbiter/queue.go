// SPDX-License-Identifier: Apache-2.0

package arbiter

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

	tickets []*ledger.Ticket             // in the order of their rank
	looks   int                          // see Looks
	ranks   []Request                    // theirs
	behind  map[ledger.TicketID]bool     // those that MaxWaiting leaves out
	decided map[ledger.TicketID]decision // on the first of them
	next    int                          // how many these are

	slots     slots
	elsewhere map[ledger.VolumeID]awaiting  // see keptElsewhere, as it is needed
	users     map[*ledger.NodeVolume]ranked // of NodeVolumes with many users, as they are needed
	weights   map[ledger.VolumeID]int       // filled by weight
}

// decision is what Grant says of a ticket.
type decision struct {
	verdict Verdict
	steps   []Step
	gets    bool // it is granted, or will be as soon as it has been told that it asks anew
}

// ranked is the users of a NodeVolume: first those that are more than tickets which are
// not granted, then those of these that contend, in the order of their rank.
type ranked struct {
	users  []ledger.User
	asking []Request
}

// Queue returns the pending tickets of a node.
func (a Arbiter) Queue(s ledger.Snapshot, n ledger.NodeName, now time.Time) *Queue {
	q := &Queue{
		arbiter: a, snapshot: s, node: n, now: now, decided: map[ledger.TicketID]decision{},
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

// rank sorts the tickets, and leaves out those that are too many of a namespace. A ticket that
// may be granted, or that a hold names, is not left out: tickets with a better rank wait until it
// is told.
func (q *Queue) rank(node *ledger.Node) {
	q.ranks = make([]Request, 0, len(node.Tickets))
	for _, id := range node.Tickets {
		q.ranks = append(q.ranks, requestOf(q.snapshot, ledger.User{Ticket: id}))
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
		case !mayBeGranted(t) && !q.named(t):
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

// named says whether the hold of a volume gives it to a ticket.
func (q *Queue) named(t *ledger.Ticket) bool {
	return slices.ContainsFunc(q.snapshot.TicketAt(t.ID), func(v ledger.VolumeID) bool {
		volume := q.snapshot.Volume(v)
		return volume != nil && namedInHold(q.snapshot, volume, ledger.User{Ticket: t.ID})
	})
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
		switch standingOf(q.snapshot, u) {
		case gone:
		case asking:
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
func (q *Queue) Grant(t *ledger.Ticket) (Verdict, []Step) {
	rank := ticketAsks(t)
	for ; q.next < len(q.tickets) && CompareRequests(q.ranks[q.next], rank) <= 0; q.next++ {
		if before := q.tickets[q.next]; !before.InDoubt { // one in doubt has its slots, as if it were granted
			q.handOut(before)
		}
	}
	d, decided := q.decided[t.ID]
	if !decided {
		d = q.decide(t, TicketRequest(q.snapshot, t))
	}
	return d.verdict, d.steps
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
	case HoldWasRefused(t): // keeps nothing
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
		return decision{verdict: q.slotsLast(t, r, verdict)}
	}
	if early := neverAttached(s, t); len(early) > 0 {
		return decision{verdict: refuse(early)}
	}
	if before := q.outranked(t, r); len(before) > 0 {
		return decision{verdict: refuse(before)} // Keeps would take the grant back at once
	}
	verdict, steps := q.holds(r, t)
	// Who waits only until it is known whether another ticket is granted has its slots meanwhile. Not so one whose
	// hold was refused: that lasts as a rule, and each time that it is tried again it asks anew first.
	d := decision{verdict: verdict, steps: steps, gets: (verdict.Allowed() || verdict.First().Code == NotGranted) && !HoldWasRefused(t)}
	if verdict.Allowed() && gaveWay(t) && len(r.Needs) > 0 {
		// It asks anew, and that is written first: from here on a hold that
		// names it means it.
		d.verdict, d.steps = r.notGranted(), nil
	}
	return d
}

// HoldWasRefused says whether a ticket waits, as it was told, since the hold of one of its volumes
// was refused: it keeps nothing from others, and is tried again after a pause.
func HoldWasRefused(t *ledger.Ticket) bool { return t.Waits() && t.Reason == string(HoldRefused) }

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

// holdUnanswered as the Detail of NotGranted says why a grant does not write a volume's hold.
const holdUnanswered = "the API server has not answered a write of its VolumeHold, and nothing is granted until it is known what that says"

// WithoutHold says why a ticket is not granted of which the API server refuses to have the hold of a volume written.
func WithoutHold(s ledger.Snapshot, t *ledger.Ticket, v ledger.VolumeID) Verdict {
	reason := Reason{Code: HoldRefused, Volume: v}
	for _, need := range TicketRequest(s, t).Needs {
		if need.Volume == v {
			reason.Claim = need.Name
		}
	}
	return refuse([]Reason{reason})
}

// holds makes the holds that are written before a grant, unless one of the volumes is
// another's by its hold as it is to be.
func (q *Queue) holds(r Request, t *ledger.Ticket) (Verdict, []Step) {
	s := q.snapshot
	granted := s.With(&ledger.Delta{Granted: t.ID})
	var steps []Step
	for _, need := range r.Needs {
		v := s.Volume(need.Volume)
		if v == nil || !s.AttachRequired(v.ID.Driver) {
			continue
		}
		p := q.arbiter.planner(granted, v, q.now)
		if other := p.grantUnderWay(t.Node, need.Access); other != nil {
			return refuse([]Reason{{Code: NotGranted, Volume: v.ID, Claim: need.Name, Who: requester(s, ledger.User{Ticket: other.ID})}}), nil
		}
		if !p.exclusive || !v.ID.IsReal() {
			continue
		}
		if v.HoldUnanswered > 0 {
			// The volume's plan finds out what the hold says. Each write of a grant would have it begin anew.
			return refuse([]Reason{{Code: NotGranted, Volume: v.ID, Claim: need.Name, Detail: holdUnanswered}}), nil
		}
		if reason, kept := p.heldBack(r, t.Node, need.Name); kept {
			return refuse([]Reason{reason}).SeenFrom(r.Who.Namespace), nil
		}
		if p.hold.Next.Node == t.Node {
			// By name, as its grant will be on its way: the promise may have been
			// made to somebody else there, who goes.
			p.hold.Next.To = r.Who
			p.hold.Waiting = p.waiting(p.hold.Node, r.Who)
		}
		// Written even when it says so already: its version is what keeps two leaders apart, and
		// a leader from what it has under way.
		p.hold.Grants = anotherVersion(p.hold.Grants)
		p.writeHold() //mutant:grant-without-hold
		steps = append(steps, p.plan.Steps...)
	}
	slices.SortFunc(steps, func(a, b Step) int { return a.Volume.Compare(b.Volume) })
	return allow(), steps
}
