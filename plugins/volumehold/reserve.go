// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Reserve has the ledger count the pod's volumes at the node, after judging the
// node again by the newest snapshot: Filter's may be older. It writes nothing,
// since the framework also reserves to simulate.
func (p *VolumeHold) Reserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, nodeName string) *fwk.Status {
	fact := factOf(pod)
	if len(fact.Volumes) == 0 {
		return nil
	}
	node := ledger.NodeName(nodeName)
	snapshot := p.core.facts.Snapshot()
	tickets, verdict := p.core.arbiter.Reserve(snapshot, &fact, node, p.profile, p.core.now())
	if !verdict.Allowed() {
		// Filter saw it otherwise, so another node may still do: try again.
		p.core.waker.retry(pod.UID)
		return nodeStatus(verdict, node)
	}
	for _, ticket := range tickets {
		r := &reservation{
			pod: pod, ticket: ticket, news: make(chan struct{}, 1),
			follow: follows(snapshot, arbiter.PodRequest(snapshot, &fact)),
		}
		if err := p.core.book.open(r); err != nil {
			return fwk.AsStatus(err)
		}
	}
	p.core.waker.reserved(pod.UID, true)
	return nil
}

// follows says whether the grant is not the last word before the bind: a claim
// is not bound yet, or a policy wants the volume attached first.
func follows(s ledger.Snapshot, r arbiter.Request) bool {
	return slices.ContainsFunc(r.Needs, func(need arbiter.Need) bool {
		return need.Link == ledger.LinkUnbound || policyOf(s, need).BindAfterAttached
	})
}

// policyOf returns the policy for what a pod needs.
func policyOf(s ledger.Snapshot, need arbiter.Need) ledger.Policy {
	class := ""
	if need.Claim != nil {
		class = need.Claim.Class
	}
	return arbiter.PolicyFor(s, need.Volume.Driver, class)
}

// Unreserve ends the pod's reservation, if it has one. A ticket that was never
// asked for stops counting at once. One that may be written counts on until its
// deletion is confirmed, as it does for the controller.
func (p *VolumeHold) Unreserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	r := p.core.book.close(string(pod.UID))
	if r == nil {
		return
	}
	p.core.waker.reserved(pod.UID, false)
	if r.attempt == nil {
		p.core.touch(p.core.book.release(r.ticket.ID))
		return
	}
	done := p.core.writer.withdraw(p.core.process, r.ticket.ID, r.attempt)
	go func() {
		<-done
		p.core.touch(p.core.book.release(r.ticket.ID))
		if !r.allowed {
			p.core.waker.retry(pod.UID) // refused, or out of time: another node may do
		}
	}()
}

// PostBind ends the book's part in it: from here on the bound pod counts by
// itself, and the controller frees the ticket. The reservation stays on the
// book until the ledger has the pod as bound, so that it is not taken for one
// that nobody stands behind.
func (p *VolumeHold) PostBind(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	p.core.waker.leave(pod.UID)
	if r := p.core.book.of(string(pod.UID)); r != nil {
		p.core.keeper.look(r.ticket.ID)
	}
}
