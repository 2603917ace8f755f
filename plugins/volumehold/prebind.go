// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/plugins/internal/reservation"
)

// PreBindPreFlight has PreBind skipped, but for pods for which the grant is not
// the last word, or not given yet. Those go after VolumeBinding's PreBind, not beside it.
//
// kube-scheduler asks before the wait in Permit, and only with its gate
// NominatedNodeNameForExpectation: it decides nothing that may change meanwhile.
func (p *VolumeHold) PreBindPreFlight(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	if r := p.granted(pod); r != nil && !r.AtOnce && (!p.core.book.Passed(r) || p.follows(r)) {
		return &fwk.PreBindPreFlightResult{AllowParallel: false}, nil
	}
	return &fwk.PreBindPreFlightResult{AllowParallel: true}, fwk.NewStatus(fwk.Skip)
}

// follows says whether a pod that has been let pass still waits for something before its bind.
func (p *VolumeHold) follows(r *reservation.Reservation) bool {
	return !p.core.book.Ungranted(r) && p.core.book.FollowsGrant(p.core.arbiter, r)
}

// PreBind waits until the volumes that unbound claims have become are granted,
// too, since the grant was for their slots; and until tickets with other parameters
// have let go of the pod's volumes. It waits as long as Permit did, and as long as
// tickets have that are asked to let go first. It ends early when the pod is deleted,
// which the framework would notice only at Bind. A pod that the controller may bind at
// once has no ticket yet; see Bind.
func (p *VolumeHold) PreBind(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	r := p.granted(pod)
	if r == nil || r.AtOnce {
		return nil
	}
	return p.waitBeforeBind(ctx, r, pod)
}

// waitBeforeBind waits as PreBind says until nothing keeps a pod with a grant from its bind.
func (p *VolumeHold) waitBeforeBind(ctx context.Context, r *reservation.Reservation, pod *corev1.Pod) *fwk.Status {
	if !p.follows(r) {
		return nil
	}
	fact, s := factOf(pod), p.core.facts.Snapshot()
	limit := p.terms(pod).limit + reservation.NoticeFor(s, arbiter.PodRequest(s, &fact), r.Ticket.Node)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("still so after %s", limit))
	defer cancel()
	for {
		waitsFor, err := p.core.book.PendingBeforeBind(p.core.arbiter, r)
		if errors.Is(err, reservation.ErrRefused) {
			p.core.requeuer.Refuse(pod.UID, r.Ticket.Node, err.Error())
		}
		if err != nil {
			return fwk.AsStatus(err)
		}
		if waitsFor == "" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fwk.AsStatus(fmt.Errorf("%s: %w", waitsFor, context.Cause(ctx)))
		case <-r.News():
		}
	}
}
