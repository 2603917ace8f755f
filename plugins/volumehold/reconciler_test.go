// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
	"github.com/moorage-dev/moorage/plugins/internal/reservation"
)

// leftBehind puts a ticket of a pod there, as an earlier process wrote it.
func (r *rig) leftBehind(pod *corev1.Pod, node, scheduler string) {
	r.t.Helper()
	ticket := reservation.Object(ledger.Ticket{
		ID: ticketID(pod), Type: ledger.TypePod, Node: ledger.NodeName(node), Scheduler: scheduler,
		Pod: string(pod.UID), PodName: pod.Name, Volumes: []ledger.TicketVolume{{Claim: "data", ClaimUID: "claim-data"}},
	})
	ticket.UID, ticket.ResourceVersion = "left-"+pod.UID, "7"
	r.mu.Lock()
	r.tickets[ticketID(pod).String()] = ticket
	r.mu.Unlock()
	r.apply(translate.Ticket(ticket))
}

// A scheduler that starts to lead withdraws what an earlier one left behind,
// and only that.
func TestLeaderWithdrawsWhatIsLeft(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessMany)...)
	unbound, bound, stale, foreign := podWith("unbound", "data"), boundTo(podWith("bound", "data"), "n1"), podWith("stale", "data"), podWith("foreign", "data")
	r.known(unbound, bound, stale, foreign)
	r.mu.Lock()
	r.pods[string(stale.UID)] = boundTo(stale, "n1") // the cache is behind
	r.mu.Unlock()
	for _, pod := range []*corev1.Pod{unbound, bound, stale} {
		r.leftBehind(pod, "n1", profile)
	}
	r.leftBehind(foreign, "n1", "other")
	eventually(t, "the tickets to be looked at", func() bool { return r.plugin.core.book.Pending() == 0 })
	if w := r.writes(); len(w) != 0 {
		t.Fatalf("writes before this process leads: %v", w)
	}

	r.prefilter(podWith("first")) // only who leads schedules
	eventually(t, "the leftover to be withdrawn", func() bool {
		_, exists := r.Ticket(ticketID(unbound))
		return !exists && r.Snapshot().Ticket(ticketID(unbound)) == nil
	})
	// A ticket that an earlier leader still had in flight.
	late := podWith("late", "data")
	r.known(late)
	r.leftBehind(late, "n2", profile)
	eventually(t, "the late one to be withdrawn", func() bool { return len(r.writes()) == 2 })
	eventually(t, "the tickets to be looked at", func() bool { return r.plugin.core.book.Pending() == 0 })
	for _, pod := range []*corev1.Pod{bound, stale, foreign} {
		if _, exists := r.Ticket(ticketID(pod)); !exists {
			t.Errorf("the ticket of pod %s was withdrawn", pod.Name)
		}
	}
}

func TestWithdrawalIsTriedUntilItIsDone(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	pod := podWith("p", "data")
	r.known(pod)
	c := r.reserve(pod, "n1").permit()
	r.written(pod, "n1")
	var refused atomic.Int32
	r.failWith(func(verb string, _ *v1alpha1.VolumeTicket) error {
		if verb == "delete" && refused.Add(1) <= 3 {
			return errors.New("the server is shutting down")
		}
		return nil
	})
	c.unreserve()
	eventually(t, "the ticket to be withdrawn", func() bool { return slices.Equal(r.writes(), []string{"create n1", "delete n1"}) })
	if got := refused.Load(); got != 4 {
		t.Errorf("it took %d attempts, want 4", got)
	}
}
