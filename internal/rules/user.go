// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// claimState is the state of a user's claim on a VolumeOnNode.
type claimState uint8

const (
	noClaim     claimState = iota // gone, or removed by a dry run
	requested                     // a pending ticket
	terminating                   // may use the volume, but has no claim
	active                        // a pod that runs or will, or a ticket that is granted or whose grant was sent
)

func claimStateOf(s ledger.Snapshot, u ledger.User) claimState {
	if u.Pod != "" {
		return claimStateOfPod(s, u.Pod)
	}
	t := s.Ticket(u.Ticket)
	if t == nil {
		return noClaim
	}
	if d := s.Delta(); t.Phase == ledger.TicketGranted || t.Granting || d != nil && d.Granted == t.ID {
		return active
	}
	return requested
}

func claimStateOfPod(s ledger.Snapshot, uid string) claimState {
	if d := s.Delta(); d != nil && d.Removed[uid] {
		return noClaim
	}
	p := s.Pod(uid)
	switch {
	case p == nil || p.Phase == ledger.PodFinished:
		return noClaim
	case p.Phase == ledger.PodTerminating, runsNowhere(s, p):
		return terminating
	}
	return active
}

// runsNowhere says whether a pod is bound to a deleted Node where no volume is, or may be. Pod garbage
// collection deletes it.
func runsNowhere(s ledger.Snapshot, p *ledger.Pod) bool {
	if p.Node == "" {
		return false
	}
	n := s.Node(p.Node)
	if n == nil || n.Exists {
		return n == nil
	}
	return !slices.ContainsFunc(n.At(), func(v ledger.VolumeID) bool {
		at := s.Volume(v).OnNode(p.Node)
		return at.OccupiesSlot() || at.WithoutAttachment()
	})
}

// requestOf is a user's request, for its rank and name: without its needs.
func requestOf(s ledger.Snapshot, u ledger.User) Request {
	if u.Pod != "" {
		if p := s.Pod(u.Pod); p != nil {
			return podAsks(p)
		}
		return Request{Who: ledger.Requester{UID: u.Pod}, Pod: u.Pod}
	}
	if t := s.Ticket(u.Ticket); t != nil {
		return ticketAsks(t)
	}
	return Request{Type: "gone", Ticket: u.Ticket}
}

func requester(s ledger.Snapshot, u ledger.User) ledger.Requester {
	if u.Pod != "" {
		if p := s.Pod(u.Pod); p != nil {
			return ledger.Requester{Namespace: p.Namespace, Name: p.Name, UID: p.UID}
		}
		return ledger.Requester{UID: u.Pod}
	}
	if t := s.Ticket(u.Ticket); t != nil {
		return ticketRequester(t)
	}
	return ledger.Requester{Ticket: true, Namespace: u.Ticket.Namespace, Name: u.Ticket.Name}
}

func ticketRequester(t *ledger.Ticket) ledger.Requester {
	return ledger.Requester{Ticket: true, Namespace: t.ID.Namespace, Name: t.ID.Name, UID: t.UID}
}

// yields says whether a user gives way to a request: a ticket of a yielding type, to a pod's priority or
// above.
func yields(s ledger.Snapshot, u ledger.User, to Request) bool {
	t := s.Ticket(u.Ticket)
	return t != nil && t.Type.Yields() && to.priority() >= ledger.PodPriority
}
