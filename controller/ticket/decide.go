// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// answer is what becomes of a pending ticket.
type answer uint8

const (
	wait   answer = iota // stays pending, with the reason on it
	grant                // after its holds are written
	refuse               // for good: whoever asked looks for another node
)

// decision is an answer with what belongs to it.
type decision struct {
	answer  answer
	verdict arbiter.Verdict
	holds   []arbiter.Step // grant: in the order in which they are written
}

// decide answers a pending ticket.
func decide(a arbiter.Arbiter, s ledger.Snapshot, t *ledger.Ticket, now time.Time) decision {
	verdict, holds := a.Grant(s, t, now)
	d := decision{answer: wait, verdict: verdict, holds: holds}
	switch {
	case verdict.Allowed():
		d.answer = grant
		slices.SortFunc(d.holds, func(a, b arbiter.Step) int { return strings.Compare(holdName(a), holdName(b)) })
	case t.Type == ledger.TypePod && (verdict.Outcome == arbiter.Deny || long(verdict)):
		d.answer = refuse
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

// exhausted says whether a granted reservation leads nowhere: the driver has
// said that the node has no room, and the pod is not bound yet.
func exhausted(s ledger.Snapshot, t *ledger.Ticket) arbiter.Verdict {
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
