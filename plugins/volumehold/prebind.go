// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	configv1alpha1 "github.com/moorage-dev/moorage/api/config/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/plugins/internal/reservation"
)

// PreBindPreFlight has PreBind skipped, but for pods for which the grant is not
// the last word, or not given yet. Those go after VolumeBinding's PreBind, not beside it.
//
// kube-scheduler asks before the wait in Permit, and only with its gate
// NominatedNodeNameForExpectation: it decides nothing that may change meanwhile.
func (p *VolumeHold) PreBindPreFlight(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	if r := p.granted(pod); r != nil && (!p.core.book.Passed(r) || p.follows(r)) {
		return &fwk.PreBindPreFlightResult{AllowParallel: false}, nil
	}
	return &fwk.PreBindPreFlightResult{AllowParallel: true}, fwk.NewStatus(fwk.Skip)
}

// follows says whether a pod that has been let pass still waits for something before its bind.
func (p *VolumeHold) follows(r *reservation.Reservation) bool {
	return !p.core.book.Ungranted(r) && p.core.book.FollowsGrant(p.core.arbiter, r)
}

// PreBind waits until the volumes that unbound claims have become are granted,
// too, since the grant was for their slots; and until volumes are attached whose
// policy says bindAfter: Attached; when that fails, the pod goes elsewhere. It
// waits as long as Permit did, and as long as tickets have that are asked to let go of its
// volumes first; the time does not run while an attach waits for its turn among those that a policy lets the
// driver do at once, up to MaxGrantTimeout. It ends early when the pod is deleted, which the framework would notice
// only at Bind.
func (p *VolumeHold) PreBind(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	r := p.granted(pod)
	if r == nil || !p.follows(r) {
		return nil
	}
	fact, s := factOf(pod), p.core.facts.Snapshot()
	limit := p.terms(pod).limit + reservation.NoticeFor(s, arbiter.PodRequest(s, &fact), r.Ticket.Node)
	patience := time.NewTimer(limit)
	defer patience.Stop()
	most := max(limit, configv1alpha1.MaxGrantTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("still so after %s", most))
	defer cancel()
	for awaited := false; ; {
		awaits := p.core.book.AwaitsWorker(p.core.arbiter, r)
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
		if awaits || awaited {
			patience.Reset(limit)
		}
		awaited = awaits
		select {
		case <-ctx.Done():
			return fwk.AsStatus(fmt.Errorf("%s: %w", waitsFor, context.Cause(ctx)))
		case <-patience.C:
			if !awaited {
				return fwk.AsStatus(fmt.Errorf("%s: still so after %s", waitsFor, limit))
			}
		case <-r.News():
		}
	}
}
