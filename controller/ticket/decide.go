// SPDX-License-Identifier: Apache-2.0

package ticket

import (
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
		d.Answer = Refuse
	}
	return d
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
				{Code: arbiter.NodeExhausted, Volume: v, Driver: v.Driver, Node: t.Node},
			}}
		}
	}
	return arbiter.Verdict{Outcome: arbiter.Allow}
}
