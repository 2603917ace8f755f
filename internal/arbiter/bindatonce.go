// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// BindAtOnce says whether whoever decides may bind a pod to a node without a VolumeTicket,
// and makes the reservation that counts in its place. It is for pods whose volumes and slots
// nobody contends for: everybody else is to be seen waiting, and has a ticket.
//
// Whoever asks takes the reservation into the ledger before anything else is decided, and
// before the bind is sent.
func (a Arbiter) BindAtOnce(s ledger.Snapshot, pod *ledger.Pod, n ledger.NodeName, now time.Time) (ledger.Ticket, bool) {
	if pod.Node != "" || pod.Phase != ledger.PodLive || reserved(s, pod) {
		return ledger.Ticket{}, false
	}
	node := s.Node(n)
	if node == nil || !node.Exists || node.OutOfService || slices.ContainsFunc(node.Tickets, func(id ledger.TicketID) bool { return waitsFirst(s, s.Ticket(id)) }) {
		return ledger.Ticket{}, false
	}
	if a.Uncontended(s, pod, n) && !askedAt(s, pod, node) {
		tickets, verdict := a.Reserve(s, pod, n, "", now)
		if verdict.Allowed() && len(tickets) == 1 && PodRequest(s, pod).Attachable(s) {
			t := tickets[0]
			t.ID, t.Phase, t.Bind = ledger.BindID(pod.Namespace, pod.UID), ledger.TicketGranted, ledger.BindSent
			return t, true
		}
	}
	return ledger.Ticket{}, false
}

// waitsFirst says whether a ticket that is not granted is to be granted before anybody comes who has none: it has been told
// why it waits, may have been granted by the leader before, or names a claim of which this process does not know where
// it leads. Any other that nobody has decided on yet keeps its slots (ledger.Ticket.KeepsSlots), so that those which are
// free beside them are free.
func waitsFirst(s ledger.Snapshot, t *ledger.Ticket) bool {
	return t == nil || t.Waits() || t.InDoubt ||
		slices.ContainsFunc(TicketRequest(s, t).Needs, func(need Need) bool {
			return need.Link == ledger.LinkMissing || need.Link == ledger.LinkUnseen || need.Link == ledger.LinkLost
		})
}

// askedAt says whether a ticket that is not granted asks for a volume of a pod at a node.
func askedAt(s ledger.Snapshot, pod *ledger.Pod, node *ledger.Node) bool {
	return slices.ContainsFunc(PodRequest(s, pod).Needs, func(need Need) bool {
		place := s.Volume(need.Volume).NodeVolume(node.Name)
		return place != nil && slices.ContainsFunc(place.Users, func(u ledger.User) bool { return slices.Contains(node.Tickets, u.Ticket) })
	})
}

// Uncontended says whether nobody but a pod has anything to do with its volumes, as far as
// they may be at one node only: such a pod need not be seen waiting for its grant.
func (a Arbiter) Uncontended(s ledger.Snapshot, pod *ledger.Pod, n ledger.NodeName) bool {
	return !slices.ContainsFunc(PodRequest(s, pod).Needs, func(need Need) bool { return !a.uncontended(s, need, n) })
}

// reserved says whether a pod has a ticket, or a bind of it is under way.
func reserved(s ledger.Snapshot, pod *ledger.Pod) bool {
	return s.Ticket(ledger.TicketID{Namespace: pod.Namespace, Name: pod.UID}) != nil || s.Ticket(ledger.BindID(pod.Namespace, pod.UID)) != nil
}

// uncontended says whether nobody but who needs a volume at a node has anything to do with
// it, unless it may be at several nodes. The grant is the last word on it: its claim is
// bound.
func (a Arbiter) uncontended(s ledger.Snapshot, need Need, n ledger.NodeName) bool {
	if need.Link != ledger.LinkVolume {
		return false
	}
	v := s.Volume(need.Volume)
	if place := v.NodeVolume(n); place != nil && slices.ContainsFunc(place.Users, func(u ledger.User) bool { return parametersOf(s, u) != "" }) {
		return false // it may have to let go first
	}
	if v.KeptDetached() != nil {
		return false // whoever asks for that is to see the grant
	}
	if v == nil || !s.AttachRequired(v.ID.Driver) || !exclusive(access(s, v, need.Access)) {
		return true
	}
	h := hold(v)
	if h.Node != "" && h.Node != n || h.Next.Node != "" || len(h.Fences) > 0 {
		return false
	}
	return !slices.ContainsFunc(v.NodeVolumes, func(p ledger.NodeVolume) bool { return p.Node != n })
}
