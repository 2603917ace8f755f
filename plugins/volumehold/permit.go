// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	fwk "k8s.io/kube-scheduler/framework"

	configv1alpha1 "github.com/moorage-dev/moorage/api/config/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
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

// maxWaits is how many times its grantTimeout a pod waits at most, while the controller decides on
// others and has said nothing of its ticket.
const maxWaits = 4

// Permit has the pod's ticket written in the background and makes the pod wait
// for the controller's grant, for as long as its policies say. A pod without a
// reservation needs no grant. Pods of a PodGroup get theirs together.
func (p *VolumeHold) Permit(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) (*fwk.Status, time.Duration) {
	r := p.granted(pod)
	if p.core.groups.concerns(pod, r != nil) {
		p.core.groups.join(&member{pod: pod, node: ledger.NodeName(node), reservation: r, terms: p.terms(pod)})
		return fwk.NewStatus(fwk.Wait), configv1alpha1.MaxGrantTimeout
	}
	if r == nil {
		return nil, 0
	}
	terms := p.terms(pod)
	ctx, written := p.core.book.Write(p.core.process, r)
	if !written {
		return fwk.NewStatus(fwk.Unschedulable, "the reservation has ended"), 0
	}
	go p.core.waitForGrant(ctx, r, terms)
	return fwk.NewStatus(fwk.Wait), min(time.Duration(terms.waits())*terms.limit+grace, configv1alpha1.MaxGrantTimeout)
}

// terms are on what a pod waits for its grant.
type terms struct {
	limit     time.Duration
	ungranted bool // it is bound all the same when the controller does not answer
}

// waits is how many times the limit a pod waits at most: maxWaits, or as often as it has had its answer,
// what onControllerDown says included, before the scheduling framework gives up.
func (t terms) waits() int {
	return max(1, min(maxWaits, int((configv1alpha1.MaxGrantTimeout-grace)/t.limit)))
}

// terms are what the policies of a pod's volumes say, the strictest of them, or
// else what the args say.
func (p *VolumeHold) terms(pod *corev1.Pod) terms {
	fact := factOf(pod)
	s := p.core.facts.Snapshot()
	r := arbiter.PodRequest(s, &fact)
	t := terms{limit: p.grantTimeout, ungranted: reservation.BindsUngranted(s, r, p.bindUngranted)}
	if limit := reservation.GrantTimeout(s, r); limit > 0 {
		t.limit = limit
	}
	return t
}

// waitForGrant follows a reservation from its write to the controller's verdict, and
// passes that on. It ends with ctx, which Unreserve cancels.
func (c *core) waitForGrant(ctx context.Context, r *reservation.Reservation, t terms) {
	v := c.obtain(ctx, r, t)
	if !v.ended {
		c.deliver(ctx, r, v)
	}
}

// verdict is what became of a reservation that a pod waits for.
type verdict struct {
	ended     bool   // nothing: the attempt was over before
	refusal   string // in words for people; empty when the pod may be bound
	ungranted bool   // it may be bound, though the controller did not answer
}

// obtain follows a reservation to the controller's verdict. It ends without one
// with ctx.
func (c *core) obtain(ctx context.Context, r *reservation.Reservation, t terms) verdict {
	began := c.now()
	outcome, ended := c.book.WaitForGrant(ctx, r, t.limit, t.waits())
	if ended {
		return verdict{ended: true}
	}
	c.metrics.asked(outcome.Unwritten)
	switch {
	case outcome.Message == "":
		c.metrics.granted(c.now().Sub(began))
	case outcome.Silent && t.ungranted:
		return verdict{ungranted: true}
	case outcome.Refused:
		c.requeuer.Refuse(r.Pod.UID, r.Ticket.Node, outcome.Message)
		c.metrics.rejected(stageReserving, outcome.Reason)
	case outcome.Silent:
		c.metrics.rejected(stageReserving, reasonSilent)
	default:
		c.metrics.rejected(stageReserving, reasonEnded)
	}
	return verdict{refusal: outcome.Message}
}

// deliver passes a verdict on to the framework. An earlier attempt's verdict
// never reaches a later one: whoever waits is looked up while the book holds r.
func (c *core) deliver(ctx context.Context, r *reservation.Reservation, v verdict) {
	taken := c.offer(ctx, r.Pod.UID, offer{
		refusal: v.refusal,
		while:   func(f func()) bool { return c.book.While(r, f) },
		allow: func() {
			if v.ungranted {
				r.AllowUngranted()
			} else {
				r.Allow()
			}
		},
	})
	if !taken || !v.ungranted {
		return
	}
	c.metrics.ungranted.Inc()
	c.handle.EventRecorder().Eventf(r.Pod, nil, corev1.EventTypeWarning, "BindUngranted", "Scheduling",
		"moorage-controller did not answer in time: going to %s without a grant, as onControllerDown says", r.Ticket.Node)
}

// offer is a verdict for a pod that the framework may not know as waiting yet.
type offer struct {
	refusal string // empty to allow
	// while runs a function unless the attempt is over, and says whether it did.
	while func(func()) bool
	allow func() // notes that the pod is allowed, just before it is
}

// offer offers a verdict until it is taken, the attempt it is for is over, or
// ctx is done. It says whether it was taken.
func (c *core) offer(ctx context.Context, uid types.UID, o offer) (taken bool) {
	try := func(context.Context) (bool, error) {
		current := o.while(func() {
			waiting := c.handle.GetWaitingPod(uid)
			switch {
			case waiting == nil:
				return
			case o.refusal == "":
				o.allow()
				waiting.Allow(Name)
			default:
				waiting.Reject(Name, o.refusal)
			}
			taken = true
		})
		return taken || !current, nil
	}
	// Its only error is the end of ctx, and then nobody waits any more.
	_ = wait.PollUntilContextCancel(ctx, registerInterval, true, try)
	return taken
}
