// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// registerInterval is how often a verdict is offered that is faster than the
// framework. GetWaitingPod knows a pod only once every Permit plugin has
// returned, and nothing tells a plugin when that is; it is a matter of
// microseconds.
const registerInterval = time.Millisecond

// Permit has the pod's ticket written in the background and makes the pod wait
// for the controller's grant, for as long as its policies say. A pod without a
// reservation needs no grant.
func (p *VolumeHold) Permit(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.Status, time.Duration) {
	r := p.core.book.of(string(pod.UID))
	if r == nil {
		return nil, 0
	}
	ctx, cancel := context.WithCancel(p.core.process)
	written := p.core.book.while(r, func() {
		r.attempt, r.cancel = p.core.writer.create(ctx, r.ticket), cancel
	})
	if !written {
		cancel()
		return fwk.NewStatus(fwk.Unschedulable, "the reservation has ended"), 0
	}
	go func() {
		defer cancel()
		p.core.seek(ctx, r)
	}()
	return fwk.NewStatus(fwk.Wait), p.timeout(pod)
}

// timeout is how long the pod may wait for its grant: what the policies of its
// volumes say, the shortest of them, or else what the args say.
func (p *VolumeHold) timeout(pod *corev1.Pod) time.Duration {
	fact := factOf(pod)
	s := p.core.facts.Snapshot()
	shortest := time.Duration(0)
	for _, need := range arbiter.PodRequest(s, &fact).Needs {
		if t := policyOf(s, need).GrantTimeout; t > 0 && (shortest == 0 || t < shortest) {
			shortest = t
		}
	}
	if shortest == 0 {
		return p.grantTimeout
	}
	return shortest
}

// seek follows a reservation from its write to the controller's verdict, and
// passes that on. It ends with ctx, which Unreserve cancels.
func (c *core) seek(ctx context.Context, r *reservation) {
	select {
	case <-ctx.Done():
		return
	case <-r.attempt.done:
	}
	if err := r.attempt.err; err != nil {
		c.deliver(ctx, r, fmt.Sprintf("the reservation could not be written, and will be tried again: %v", err))
		return
	}
	object := r.attempt.ticket
	c.facts.Saw(object)
	// A ticket that was taken over may be decided already.
	newest, seen := translate.Ticket(object), false
	for {
		switch newest.Phase {
		case ledger.TicketGranted:
			c.deliver(ctx, r, "")
			return
		case ledger.TicketRefused:
			message := "node(s) refused: " + c.refusal(&newest)
			c.waker.refuse(r.pod.UID, r.ticket.Node, message)
			c.deliver(ctx, r, message)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-r.news:
		}
		known := c.facts.Snapshot().Ticket(r.ticket.ID)
		switch {
		case known != nil && known.UID == newest.UID && !known.Ghost:
			newest, seen = *known, true
		case seen:
			c.deliver(ctx, r, "the reservation was deleted, and will be tried again")
			return
		}
	}
}

// refusal is the controller's own message on a ticket, or at least its code.
func (c *core) refusal(t *ledger.Ticket) string {
	if object, ok := c.facts.Ticket(t.ID); ok && string(object.UID) == t.UID {
		if granted := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.TicketGranted); granted != nil && granted.Message != "" {
			return granted.Message
		}
	}
	return t.Reason
}

// deliver passes a verdict on to the framework: allowed when refusal is empty.
// The framework may not know the pod as waiting yet; it is offered again until
// it does, or the reservation ends. An earlier attempt's verdict never reaches
// a later one: whoever waits is looked up while the book holds r.
func (c *core) deliver(ctx context.Context, r *reservation, refusal string) {
	offer := func(context.Context) (bool, error) {
		delivered := false
		current := c.book.while(r, func() {
			waiting := c.handle.GetWaitingPod(types.UID(r.ticket.Pod))
			switch {
			case waiting == nil:
				return
			case refusal == "":
				r.allowed = true
				waiting.Allow(Name)
			default:
				waiting.Reject(Name, refusal)
			}
			delivered = true
		})
		return delivered || !current, nil
	}
	// Its only error is the end of ctx, and then nobody waits any more.
	_ = wait.PollUntilContextCancel(ctx, registerInterval, true, offer)
}
