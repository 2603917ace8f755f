// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/plugins/internal/reservation"
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
	r := p.core.book.Of(string(pod.UID))
	if r == nil {
		return nil, 0
	}
	ctx, written := p.core.book.Write(p.core.process, r)
	if !written {
		return fwk.NewStatus(fwk.Unschedulable, "the reservation has ended"), 0
	}
	limit := p.timeout(pod)
	go p.core.seek(ctx, r, limit)
	return fwk.NewStatus(fwk.Wait), limit + grace
}

// timeout is how long the pod may wait for its grant: what the policies of its
// volumes say, the shortest of them, or else what the args say.
func (p *VolumeHold) timeout(pod *corev1.Pod) time.Duration {
	fact := factOf(pod)
	s := p.core.facts.Snapshot()
	if t := reservation.GrantTimeout(s, arbiter.PodRequest(s, &fact)); t > 0 {
		return t
	}
	return p.grantTimeout
}

// seek follows a reservation from its write to the controller's verdict, and
// passes that on. It ends with ctx, which Unreserve cancels.
func (c *core) seek(ctx context.Context, r *reservation.Reservation, limit time.Duration) {
	outcome, ended := c.book.Seek(ctx, r, limit)
	if ended {
		return
	}
	if outcome.Refused {
		c.waker.Refuse(r.Pod.UID, r.Ticket.Node, outcome.Message)
	}
	c.deliver(ctx, r, outcome.Message)
}

// deliver passes a verdict on to the framework: allowed when refusal is empty.
// The framework may not know the pod as waiting yet; it is offered again until
// it does, or the reservation ends. An earlier attempt's verdict never reaches
// a later one: whoever waits is looked up while the book holds r.
func (c *core) deliver(ctx context.Context, r *reservation.Reservation, refusal string) {
	offer := func(context.Context) (bool, error) {
		delivered := false
		current := c.book.While(r, func() {
			waiting := c.handle.GetWaitingPod(types.UID(r.Ticket.Pod))
			switch {
			case waiting == nil:
				return
			case refusal == "":
				r.Allow()
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
