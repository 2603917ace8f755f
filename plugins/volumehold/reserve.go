// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/plugins/internal/reservation"
)

// Reserve has the ledger count the pod's volumes at the node, after judging the
// node again by the newest snapshot: Filter's may be older. It writes nothing,
// since the framework also reserves to simulate.
func (p *VolumeHold) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, nodeName string) *fwk.Status {
	fact := factOf(pod)
	if len(fact.Volumes) == 0 {
		return nil
	}
	node := ledger.NodeName(nodeName)
	snapshot := p.core.facts.Snapshot()
	tickets, verdict := p.core.arbiter.Reserve(snapshot, &fact, node, p.profile, p.core.now())
	if !verdict.Allowed() && state.IsPodGroupSchedulingCycle() {
		seen, _ := p.inGroupCycle(snapshot, verdict)
		tickets, verdict = p.core.arbiter.Reserve(seen, &fact, node, p.profile, p.core.now())
	}
	if !verdict.Allowed() {
		// Filter saw it otherwise, so another node may still do: try again.
		p.core.requeuer.Retry(pod.UID)
		return nodeStatus(verdict, node)
	}
	for _, ticket := range tickets {
		request := arbiter.PodRequest(snapshot, &fact)
		r := reservation.New(pod, ticket, reservation.Follows(p.core.arbiter, snapshot, request, ticket.Node))
		r.Local = !request.Attachable(snapshot)
		if err := p.core.book.Open(r); err != nil {
			return fwk.AsStatus(err)
		}
	}
	p.core.requeuer.Reserved(pod.UID, true)
	if c := stateOf(state); c != nil {
		c.placed = true
	}
	return nil
}

// granted returns the pod's reservation that needs the controller's grant; nil if it has none.
func (p *VolumeHold) granted(pod *corev1.Pod) *reservation.Reservation {
	if r := p.core.book.Of(string(pod.UID)); r != nil && !r.Local {
		return r
	}
	return nil
}

// Unreserve ends the pod's reservation, if it has one. A ticket that was never
// asked for stops counting at once. One that may be written counts on until its
// deletion is confirmed, as it does for the controller.
func (p *VolumeHold) Unreserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	// First: the end of the reservation touches the pod's volumes, and has it judged by all
	// that was not judged for it while it had a node.
	p.core.requeuer.Reserved(pod.UID, false)
	r, over := p.core.book.Withdraw(p.core.process, string(pod.UID))
	again := p.core.groups.leave(pod)
	if r == nil {
		if again {
			p.core.requeuer.Retry(pod.UID)
		}
		return
	}
	if !again && (!r.Written() || r.Allowed()) {
		return
	}
	go func() {
		<-over
		p.core.requeuer.Retry(pod.UID) // refused, or out of time: another node may do
	}()
}

// PostBind ends the book's part in it: from here on the bound pod counts by
// itself, and the controller frees the ticket. The reservation stays on the
// book until the ledger has the pod as bound, so that it is not taken for one
// that nobody stands behind.
func (p *VolumeHold) PostBind(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	p.core.requeuer.Leave(pod.UID)
	if r := p.core.book.Of(string(pod.UID)); r != nil {
		p.core.book.Enqueue(r.Ticket.ID)
	}
}
