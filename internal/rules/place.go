// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Place chooses the node of a ticket that leaves it to Moorage: the node of its exclusive volumes' users;
// else its present node while it fits; else the first by Rank that fits, or lacks only slots. If there is
// none, it stays. Only pending users before it in rank count (evaluation.places). The ticket is told the
// verdict until its node's Queue says more.
func (a Arbiter) Place(s ledger.Snapshot, t *ledger.Ticket, now time.Time) (ledger.NodeName, Verdict) {
	r := TicketRequest(s, t)
	if v := a.Admissible(s, r); !v.Allowed() {
		return t.Node, v.SeenFrom(r.Who.Namespace)
	}
	w := evaluation{arbiter: a, snapshot: s, request: r, now: now, places: true}
	if n, held := w.nodes(); held {
		return n, r.notGranted()
	}
	if takesTickets(s.Node(t.Node)) && w.at(t.Node).fit().Allowed() {
		return t.Node, r.notGranted()
	}
	var best candidate
	var why Verdict
	for n := range s.Nodes() {
		if !takesTickets(n) {
			continue
		}
		v := w.at(n.Name).fit()
		c := candidate{node: n.Name, fit: fitOf(v), rank: a.Rank(s, r, n.Name, Weights{})}
		if best.node == "" || c.before(best, t.Node) {
			best, why = c, v
		}
	}
	switch {
	case best.node == "":
		return t.Node, refuse([]Reason{{Code: NoNode}})
	case best.fit == noFit:
		return t.Node, refuse([]Reason{{Code: NoNode, Node: best.node, Detail: why.First().Message()}})
	}
	return best.node, r.notGranted()
}

func (w evaluation) at(n ledger.NodeName) evaluation {
	w.node = n
	return w
}

// onlyBehind counts a driver's slots of only later pending tickets: they wait for a ticket put there.
func (w evaluation) onlyBehind(node *ledger.Node, driver string) int32 {
	counted, behind := map[ledger.VolumeID]bool{}, int32(0)
	for _, need := range w.request.Needs {
		counted[need.Volume] = true
	}
	for _, id := range node.Tickets {
		for _, v := range w.snapshot.TicketAt(id) {
			if v.Driver != driver || counted[v] {
				continue
			}
			counted[v] = true
			if w.isBehind(w.snapshot.Volume(v).OnNode(w.node)) {
				behind++
			}
		}
	}
	return behind
}

func (w evaluation) isBehind(p *ledger.VolumeOnNode) bool {
	return p.TakesSlot() && !p.OccupiesSlot() && !slices.ContainsFunc(p.Users, func(u ledger.User) bool {
		if st := claimStateOf(w.snapshot, u); st != requested {
			return st != noClaim
		}
		t := w.snapshot.Ticket(u.Ticket)
		return t.InDoubt || t.KeepsSlots() && CompareRequests(requestOf(w.snapshot, u), w.request) < 0
	})
}

// notGranted says that a request only waits for its decision.
func (r Request) notGranted() Verdict {
	reason := Reason{Code: NotGranted}
	if len(r.Needs) > 0 {
		reason.Volume, reason.Claim = r.Needs[0].Volume, r.Needs[0].Name
	}
	return refuse([]Reason{reason})
}

// takesTickets says whether Moorage may choose a node: it is ready, and not being drained.
func takesTickets(n *ledger.Node) bool {
	return ready(n) && n.Managed && !n.Draining && !n.OutOfService
}

// fitness is how much a node lacks for a ticket.
type fitness uint8

const (
	noFit      fitness = iota
	lacksSlots         // and nothing else
	fits
)

func fitOf(v Verdict) fitness {
	switch {
	case v.Allowed():
		return fits
	case slices.ContainsFunc(v.Reasons, func(r Reason) bool { return r.Code != NoFreeSlot }):
		return noFit
	}
	return lacksSlots
}

type candidate struct {
	node ledger.NodeName
	fit  fitness
	rank int64
}

// before prefers the ticket's present node among equals, then the first name, for all processes alike.
func (c candidate) before(o candidate, has ledger.NodeName) bool {
	switch {
	case c.fit != o.fit:
		return c.fit > o.fit
	case c.fit == lacksSlots && (c.node == has) != (o.node == has):
		return c.node == has // it waits there already
	case c.rank != o.rank:
		return c.rank > o.rank
	}
	return c.node < o.node
}

// A waiting ticket is placed again after a tenth of its age, so that many cost little.
const (
	firstPlacing = 10 * time.Second
	lastPlacing  = 5 * time.Minute
)

// PlacedAgain is the time until a waiting ticket's node is chosen again; 0: never.
func PlacedAgain(t *ledger.Ticket, now time.Time) time.Duration {
	if !t.Wherever || t.Phase != ledger.TicketPending {
		return 0
	}
	return min(max(now.Sub(time.Unix(t.Created, 0))/10, firstPlacing), lastPlacing)
}
