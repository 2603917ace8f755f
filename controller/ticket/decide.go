// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Answer is what becomes of a pending ticket.
type Answer uint8

// The answers to a ticket.
const (
	Wait   Answer = iota // stays pending, with the reason on it
	Grant                // after its holds are written
	Refuse               // for good: whoever asked looks for another node
)

// Decision is an answer with what belongs to it.
type Decision struct {
	Answer  Answer
	Verdict arbiter.Verdict
	Holds   []arbiter.Step // with Grant: in the order in which they are written
	// Missing, with Refuse: what it takes for missing, and a consistent read has
	// to find missing before it is written.
	Missing []ledger.TicketVolume
}

// Decide answers a pending ticket. It is pure.
func Decide(a arbiter.Arbiter, s ledger.Snapshot, t *ledger.Ticket, now time.Time) Decision {
	verdict, holds := a.Grant(s, t, now)
	d := Decision{Answer: Wait, Verdict: verdict, Holds: holds}
	switch {
	case verdict.Allowed():
		d.Answer = Grant
		slices.SortFunc(d.Holds, func(a, b arbiter.Step) int { return strings.Compare(holdName(a), holdName(b)) })
	case t.Type == ledger.TypePod && (verdict.Outcome == arbiter.Deny || long(verdict)):
		d.Answer, d.Missing = Refuse, Missing(s, t)
	}
	return d
}

// Decided is a ticket, and what becomes of it.
type Decided struct {
	Ticket *ledger.Ticket
	Decision
}

// Round decides on all pending tickets of a node on the same facts. What
// follows may be written side by side: that takes no slot twice, because to
// each ticket those that rank before it count, as if they were granted. For
// the same reason a ticket that ranks after one that is refused here is not
// refused in the same round: there may be room for it once that is written, and
// another round is needed then (again). Round is pure.
func Round(a arbiter.Arbiter, s ledger.Snapshot, n ledger.NodeName, now time.Time) (list []Decided, again bool) {
	refused := false
	for _, id := range pending(s, n) {
		t := s.Ticket(id)
		if t == nil || t.Ghost || t.Phase != ledger.TicketPending {
			continue
		}
		d := Decide(a, s, t, now)
		if d.Answer != Grant && refused {
			again = true
			continue
		}
		refused = refused || d.Answer == Refuse
		list = append(list, Decided{t, d})
	}
	return list, again
}

// pending lists the tickets of a node that are to be decided: who ranks first
// comes first, so that nobody is refused for the sake of one who is refused
// after him.
func pending(s ledger.Snapshot, name ledger.NodeName) []ledger.TicketID {
	node := s.Node(name)
	if node == nil {
		return nil
	}
	list := slices.Clone(node.Tickets)
	slices.SortFunc(list, func(a, b ledger.TicketID) int {
		x, y := s.Ticket(a), s.Ticket(b)
		if x == nil || y == nil {
			return 0
		}
		return cmp.Or(cmp.Compare(y.Type.Priority(), x.Type.Priority()), cmp.Compare(x.Created, y.Created),
			cmp.Compare(x.ID.Namespace, y.ID.Namespace), cmp.Compare(x.PodName, y.PodName), cmp.Compare(x.ID.Name, y.ID.Name))
	})
	return list
}

// long says whether a wait ends only when somebody else goes. A pod waits for
// that in its scheduler's queue, and not with a node reserved.
func long(v arbiter.Verdict) bool {
	for _, r := range v.Reasons {
		switch r.Code {
		case arbiter.HeldElsewhere, arbiter.UsedByOtherPod, arbiter.ForeignAttachment, arbiter.NodeMissing:
			return true
		}
	}
	return false
}

// Exhausted says whether a granted reservation leads nowhere: the driver has
// said that the node has no room, and the pod is not bound yet. It is pure.
func Exhausted(s ledger.Snapshot, t *ledger.Ticket) arbiter.Verdict {
	if pod := s.Pod(t.Pod); t.Type != ledger.TypePod || pod == nil || pod.Node != "" {
		return arbiter.Verdict{Outcome: arbiter.Allow}
	}
	for _, v := range s.TicketAt(t.ID) {
		a := s.Volume(v).Place(t.Node).Canonical()
		if a != nil && !a.Attached && a.AttachError.Code == ledger.ResourceExhausted {
			return arbiter.Verdict{Outcome: arbiter.Deny, Reasons: []arbiter.Reason{
				{Code: arbiter.NodeExhausted, Volume: v, Driver: v.Driver, Node: t.Node, Detail: a.AttachError.Message, GRPC: a.AttachError.Code},
			}}
		}
	}
	return arbiter.Verdict{Outcome: arbiter.Allow}
}
