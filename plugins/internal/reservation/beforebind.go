// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Why waiting for a reservation to be settled ends.
var (
	ErrPodGone = errors.New("the pod is being deleted")
	ErrEnded   = errors.New("the reservation has ended")
	// ErrRefused: a grant has led nowhere, and another node may do.
	ErrRefused = errors.New("node(s) refused")
)

// Follows says whether the grant is not the last word before the bind at a node: a claim
// is not bound yet, or a ticket with parameters has to let go of a volume.
func Follows(a arbiter.Arbiter, s ledger.Snapshot, r arbiter.Request, n ledger.NodeName) bool {
	return !a.AttachedOtherwise(s, r, n).Allowed() || slices.ContainsFunc(r.Needs, func(need arbiter.Need) bool {
		return need.Link == ledger.LinkUnbound
	})
}

// FollowsGrant says whether the grant that a reservation has got is not the last word before the
// bind: by what was known when the node was chosen (Reservation.Follow), or by what has come since, such
// as a ticket with parameters that was granted a volume there before it.
func (b *Book) FollowsGrant(a arbiter.Arbiter, r *Reservation) bool {
	if r.Follow {
		return true
	}
	s := b.facts.Snapshot()
	pod := s.Pod(r.Ticket.Pod)
	if pod == nil || !Follows(a, s, arbiter.PodRequest(s, pod), r.Ticket.Node) {
		return false
	}
	return b.While(r, func() { r.Follow = true })
}

// GrantTimeout is how long a request may wait for its grant: what the policies
// of its volumes say, the shortest of them; 0 when none says anything.
func GrantTimeout(s ledger.Snapshot, r arbiter.Request) time.Duration {
	shortest := time.Duration(0)
	for _, need := range r.Needs {
		if t := need.Policy(s).GrantTimeout; t > 0 && (shortest == 0 || t < shortest) {
			shortest = t
		}
	}
	return shortest
}

// BindsUngranted says whether a pod with this request is bound although the
// controller does not answer: when each volume's policy wants that, or, where it says
// nothing of it, the scheduler's own configuration.
func BindsUngranted(s ledger.Snapshot, r arbiter.Request, otherwise bool) bool {
	for _, need := range r.Needs {
		policy := need.Policy(s)
		says := policy.Says&ledger.FieldOnControllerDown != 0
		if !policy.BindUngranted && (says || !otherwise) {
			return false
		}
	}
	return true
}

// NoticeFor is for how long tickets with other parameters may be asked to let go of volumes of a request
// before it gets them at a node: the longest of their times; 0: there are none.
func NoticeFor(s ledger.Snapshot, r arbiter.Request, n ledger.NodeName) time.Duration {
	notice := time.Duration(0)
	for _, need := range r.Needs {
		place := s.Volume(need.Volume).NodeVolume(n)
		if place == nil {
			continue
		}
		for _, u := range place.Users {
			if t := s.Ticket(u.Ticket); t != nil && u.Pod == "" && t.Parameters != r.Parameters {
				notice = max(notice, arbiter.YieldNotice(s, t))
			}
		}
	}
	return notice
}

// PendingBeforeBind says what a granted reservation's pod still waits for before the bind;
// empty for nothing. Unbound claims have become volumes, which the controller
// grants, too. An error ends the wait.
func (b *Book) PendingBeforeBind(a arbiter.Arbiter, r *Reservation) (waitsFor string, err error) {
	s := b.facts.Snapshot()
	pod, ticket := s.Pod(r.Ticket.Pod), s.Ticket(r.Ticket.ID)
	switch {
	case pod == nil || pod.Phase != ledger.PodLive:
		return "", ErrPodGone
	case ticket != nil && ticket.Phase == ledger.TicketRefused:
		// A grant can lead nowhere: the driver found no room at the node.
		return "", fmt.Errorf("%w: %s", ErrRefused, b.answer(ticket))
	case ticket == nil || ticket.Ghost:
		return "", ErrEnded
	case ticket.Phase != ledger.TicketGranted:
		// The grant was heard of before the ledger has it.
		return "the grant is not seen yet", nil
	}
	if verdict := a.AttachedOtherwise(s, arbiter.PodRequest(s, pod), r.Ticket.Node); !verdict.Allowed() {
		return verdict.First().Message(), nil
	}
	for _, need := range arbiter.PodRequest(s, pod).Needs {
		verdict := a.VolumeGranted(s, need, r.Ticket.Node)
		if !verdict.Allowed() {
			// Even what denies may pass: a claim can be known as bound before its
			// PersistentVolume is known.
			return verdict.First().Message(), nil
		}
	}
	return "", nil
}
