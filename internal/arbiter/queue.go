// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"cmp"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// MaxWaiting is how many tickets of pods of one namespace, and how many other tickets of
// it, are decided on at a node at a time: those that rank first. A node has room for
// fewer pods than that. Whoever may make tickets makes as many as they like, and each
// change at the node has all of them decided on; so the others wait until some of these
// are granted or gone, and until then count as those that rank last.
const MaxWaiting = 256

// Queue is the pending tickets of a node, for decisions on the same facts. What these
// decisions have in common is worked out once, so that together they cost little more
// than in proportion to the tickets. Not safe for parallel use.
type Queue struct {
	arbiter  Arbiter
	snapshot ledger.Snapshot
	now      time.Time

	tickets []*ledger.Ticket              // in the order of their rank
	behind  map[ledger.TicketID]bool      // those that MaxWaiting leaves out
	leaves  map[ledger.VolumeID]departure // of the volumes that these tickets ask for, with a NodeVolume here
	last    map[string][]Request          // by driver, the places of leaves that may come free: after whom, sorted
	users   map[*ledger.NodeVolume]ranked // of NodeVolumes with many users, as they are needed
}

// departure says to whom a NodeVolume's slot is free: to who ranks before all its users,
// if these are tickets that are not granted.
type departure struct {
	never bool    // somebody else keeps it
	first Request // who ranks first of its users
	none  bool    // nobody counts: it is free to everyone
}

// ranked is the users of a NodeVolume: first those that are more than tickets which are
// not granted, then these, in the order of their rank.
type ranked struct {
	users  []ledger.User
	asking []Request
}

// Queue returns the pending tickets of a node.
func (a Arbiter) Queue(s ledger.Snapshot, n ledger.NodeName, now time.Time) *Queue {
	q := &Queue{arbiter: a, snapshot: s, now: now, users: map[*ledger.NodeVolume]ranked{}}
	if node := s.Node(n); node != nil {
		q.rank(node)
		q.depart(node)
	}
	return q
}

// Tickets lists the pending tickets: who ranks first comes first, so that nobody is
// refused for the sake of one who is refused after him.
func (q *Queue) Tickets() []*ledger.Ticket { return q.tickets }

// rank sorts the tickets, and leaves out those that are too many of a namespace. One that
// a hold names is not left out: whoever it is promised before waits until it is told.
func (q *Queue) rank(node *ledger.Node) {
	requests := make([]Request, 0, len(node.Tickets))
	for _, id := range node.Tickets {
		requests = append(requests, requestOf(q.snapshot, ledger.User{Ticket: id}))
	}
	slices.SortFunc(requests, CompareRequests)
	type share struct {
		namespace string
		pods      bool
	}
	waiting := map[share]int{}
	q.behind = map[ledger.TicketID]bool{}
	for _, r := range requests {
		t := q.snapshot.Ticket(r.Ticket)
		q.tickets = append(q.tickets, t)
		of := share{t.ID.Namespace, t.Type == ledger.TypePod}
		switch {
		case t.InDoubt: // not decided on
		case waiting[of] < MaxWaiting:
			waiting[of]++
		case !q.named(t):
			q.behind[t.ID] = true
		}
	}
}

// named says whether the hold of a volume gives it to a ticket.
func (q *Queue) named(t *ledger.Ticket) bool {
	return slices.ContainsFunc(q.snapshot.TicketAt(t.ID), func(v ledger.VolumeID) bool {
		volume := q.snapshot.Volume(v)
		return volume != nil && namedInHold(q.snapshot, volume, ledger.User{Ticket: t.ID})
	})
}

// depart works out which slots come free if those who rank last are not served.
func (q *Queue) depart(node *ledger.Node) {
	q.leaves, q.last = map[ledger.VolumeID]departure{}, map[string][]Request{}
	for _, t := range q.tickets {
		for _, v := range q.snapshot.TicketAt(t.ID) {
			if _, known := q.leaves[v]; known {
				continue
			}
			p := q.snapshot.Volume(v).NodeVolume(node.Name)
			if !p.TakesSlot() {
				continue
			}
			d := q.departure(p)
			q.leaves[v] = d
			if !d.never {
				q.last[v.Driver] = append(q.last[v.Driver], d.first)
			}
		}
	}
	for _, list := range q.last {
		slices.SortFunc(list, compareLast)
	}
}

// compareLast is CompareRequests; who is left out, and the zero Request of a departure that is
// free to everyone, come last.
func compareLast(a, b Request) int {
	switch x, y := isLast(a), isLast(b); {
	case x && y:
		return 0
	case x:
		return 1
	case y:
		return -1
	}
	return CompareRequests(a, b)
}

func isLast(r Request) bool { return r.Type == "" && r.Who.IsZero() }

// departure says to whom a NodeVolume's slot is free. A ticket that a leader before may
// have granted keeps it.
func (q *Queue) departure(p *ledger.NodeVolume) departure {
	if p.OccupiesSlot() {
		return departure{never: true}
	}
	d := departure{none: true}
	for _, u := range p.Users {
		switch st := standingOf(q.snapshot, u); {
		case st == gone:
		case st != asking || q.snapshot.Ticket(u.Ticket).InDoubt:
			return departure{never: true}
		case q.behind[u.Ticket]:
		default:
			if r := requestOf(q.snapshot, u); d.none || CompareRequests(r, d.first) < 0 {
				d = departure{first: r}
			}
		}
	}
	return d
}

// freeTo says whether the departure leaves the slot to a request.
func (d departure) freeTo(r Request) bool {
	return !d.never && (d.none || CompareRequests(d.first, r) > 0)
}

// free counts the slots of a driver that are free to a request, apart from those of the
// volumes in kept, which stay.
func (q *Queue) free(r Request, driver string, kept map[ledger.VolumeID]bool) int32 {
	list := q.last[driver]
	before, _ := slices.BinarySearchFunc(list, r, func(other, r Request) int { return cmp.Or(compareLast(other, r), -1) })
	free := len(list) - before
	for v := range kept {
		if d, listed := q.leaves[v]; listed && v.Driver == driver && d.freeTo(r) {
			free--
		}
	}
	return int32(free)
}

// own are the volumes, of those that tickets of the node ask for, that the requester
// itself uses or asks for.
func (q *Queue) own(r Request) []ledger.VolumeID {
	list := slices.Concat(q.snapshot.TicketAt(r.Ticket), q.snapshot.PodAt(r.Pod))
	return slices.DeleteFunc(list, func(v ledger.VolumeID) bool {
		_, listed := q.leaves[v]
		return !listed
	})
}

// fewUsers is up to how many users of a NodeVolume are looked at as they come, and of
// how many tickets a verdict says at most that they keep a volume.
const fewUsers = 16

// blockers are the users of a NodeVolume that may keep a volume from a request. Of the
// tickets that rank before it, the first few are enough.
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
			k.asking = append(k.asking, requestOf(q.snapshot, u))
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
	a, s := q.arbiter, q.snapshot
	r := TicketRequest(s, t)
	w := view{arbiter: a, snapshot: s, request: r, node: t.Node, now: q.now, queue: q}
	if lost := w.fenced(); len(lost) > 0 {
		return refuse(lost), nil // before all else: whoever waits for this ticket to give way sees that it has
	}
	if PauseLeft(s, t, q.now) > 0 {
		return refuse([]Reason{{Code: Outranked, Node: t.Node}}), nil
	}
	if q.behind[t.ID] {
		return refuse([]Reason{{Code: TooManyTickets, Node: t.Node, Limit: MaxWaiting}}), nil
	}
	verdict := w.judge(nil)
	if node := s.Node(t.Node); node == nil || !node.Exists {
		// Without a node nothing else that waits says anything new.
		reasons := slices.DeleteFunc(slices.Clone(verdict.Reasons), func(r Reason) bool { return outcomeOf(r.Code) == Wait })
		verdict = refuse(append(reasons, Reason{Code: NodeMissing, Node: t.Node}))
	}
	if !verdict.Allowed() {
		return slotsLast(t, verdict), nil
	}
	if early := append(tooEarly(s, r, a.refuses), a.forPodsOnly(s, t)...); len(early) > 0 {
		return refuse(early), nil
	}
	verdict, steps := q.holds(r, t)
	if verdict.Allowed() && gaveWay(t) && len(r.Needs) > 0 {
		// It asks anew, and that is written first: from here on a hold that
		// names it means it.
		return refuse([]Reason{{Code: NotGranted, Volume: r.Needs[0].Volume, Claim: r.Needs[0].Name}}), nil
	}
	return verdict, steps
}

// slotsLast is what a ticket that is not a pod's is told: that slots are missing only where
// nothing else is, since it keeps those then that come free.
func slotsLast(t *ledger.Ticket, v Verdict) Verdict {
	if t.Type == ledger.TypePod {
		return v
	}
	others := slices.DeleteFunc(slices.Clone(v.Reasons), func(r Reason) bool { return r.Code == NoFreeSlot })
	if len(others) == 0 {
		return v
	}
	return refuse(others)
}

// holds makes the holds that are written before a grant, unless one of the volumes is
// another's by its hold as it is to be.
func (q *Queue) holds(r Request, t *ledger.Ticket) (Verdict, []Step) {
	s := q.snapshot
	granted := s.With(&ledger.Delta{Granted: t.ID})
	var steps []Step
	for _, need := range r.Needs {
		v := s.Volume(need.Volume)
		if v == nil || !v.ID.IsReal() || !s.AttachRequired(v.ID.Driver) {
			continue
		}
		p := q.arbiter.planner(granted, v, q.now)
		if !p.exclusive {
			continue
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
		// Written even when it says so already: its version is what keeps
		// two leaders apart.
		p.writeHold() //mutant:grant-without-hold
		steps = append(steps, p.plan.Steps...)
	}
	slices.SortFunc(steps, func(a, b Step) int { return a.Volume.Compare(b.Volume) })
	return allow(), steps
}

// after says whether a ticket that is not granted comes after a request. One that a leader
// before may have granted does not.
func (q *Queue) after(u ledger.User, r Request) bool {
	return !q.snapshot.Ticket(u.Ticket).InDoubt && (q.behind[u.Ticket] || CompareRequests(requestOf(q.snapshot, u), r) > 0)
}
