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

// grace is by how much the framework's own timeout comes after the plugin's,
// which says what was waited for; the framework's is for the case that the
// plugin fails.
const grace = 5 * time.Second

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
	limit := p.timeout(pod)
	go func() {
		defer cancel()
		refusal, ended := p.core.seek(ctx, r, limit)
		if !ended {
			p.core.deliver(ctx, r, refusal)
		}
	}()
	return fwk.NewStatus(fwk.Wait), limit + grace
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

// seek follows a reservation from its write to the controller's verdict: granted
// when refusal is empty. It ends without one with ctx, which Unreserve cancels.
func (c *core) seek(ctx context.Context, r *reservation, limit time.Duration) (refusal string, ended bool) {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-ctx.Done():
		return "", true
	case <-late.C:
		return fmt.Sprintf("the reservation could not be written within %s, and will be tried again", limit), false
	case <-r.attempt.done:
	}
	if err := r.attempt.err; err != nil {
		return fmt.Sprintf("the reservation could not be written, and will be tried again: %v", err), false
	}
	object := r.attempt.ticket
	c.facts.Saw(object)
	// A ticket that was taken over may be decided already.
	newest, seen := translate.Ticket(object), false
	for {
		switch newest.Phase {
		case ledger.TicketGranted:
			return "", false
		case ledger.TicketRefused:
			refusal = "node(s) refused: " + c.answer(&newest)
			c.waker.refuse(r.pod.UID, r.ticket.Node, refusal)
			return refusal, false
		}
		select {
		case <-ctx.Done():
			return "", true
		case <-late.C:
			return c.unanswered(&newest, limit), false
		case <-r.news:
		}
		known := c.facts.Snapshot().Ticket(r.ticket.ID)
		switch {
		case known != nil && known.UID == newest.UID && !known.Ghost:
			newest, seen = *known, true
		case seen:
			return "the reservation was deleted, and will be tried again", false
		}
	}
}

// unanswered says why a ticket was not decided in time, as far as the
// controller has said so.
func (c *core) unanswered(t *ledger.Ticket, limit time.Duration) string {
	if message := c.answer(t); message != "" {
		return fmt.Sprintf("not granted within %s, and will be tried again: %s", limit, message)
	}
	return fmt.Sprintf("moorage-controller did not answer within %s; does it run, and lead? It will be tried again", limit)
}

// answer is the controller's own message on a ticket, or at least its code;
// empty when it has said nothing.
func (c *core) answer(t *ledger.Ticket) string {
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
