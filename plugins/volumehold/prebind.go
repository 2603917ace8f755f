// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Why PreBind gives up at once.
var (
	errPodGone     = errors.New("the pod is being deleted")
	errReservation = errors.New("the reservation has ended")
	errRefused     = errors.New("node(s) refused")
)

// PreBindPreFlight has PreBind skipped, but for pods for which the grant is not
// the last word. Those go after VolumeBinding's PreBind, not beside it.
func (p *VolumeHold) PreBindPreFlight(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	if r := p.core.book.of(string(pod.UID)); r != nil && r.follow {
		return &fwk.PreBindPreFlightResult{AllowParallel: false}, nil
	}
	return &fwk.PreBindPreFlightResult{AllowParallel: true}, fwk.NewStatus(fwk.Skip)
}

// PreBind waits until the volumes that unbound claims have become are granted,
// too, since the grant was for their slots; and until volumes are attached whose
// policy says bindAfter: Attached; when that fails, the pod goes elsewhere. It
// waits as long as Permit did, and ends early when the pod is deleted, which the
// framework would notice only at Bind.
func (p *VolumeHold) PreBind(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	r := p.core.book.of(string(pod.UID))
	if r == nil || !r.follow {
		return nil
	}
	limit := p.timeout(pod)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("still so after %s", limit))
	defer cancel()
	for {
		waitsFor, err := p.core.settled(r)
		if errors.Is(err, errRefused) {
			p.core.waker.refuse(pod.UID, r.ticket.Node, err.Error())
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
		case <-r.news:
		}
	}
}

// settled says what a reservation still waits for before the bind; empty for
// nothing. An error ends the wait.
func (c *core) settled(r *reservation) (waitsFor string, err error) {
	s := c.facts.Snapshot()
	pod, ticket := s.Pod(r.ticket.Pod), s.Ticket(r.ticket.ID)
	switch {
	case pod == nil || pod.Phase != ledger.PodLive:
		return "", errPodGone
	case ticket != nil && ticket.Phase == ledger.TicketRefused:
		// A grant can lead nowhere: the driver found no room at the node.
		return "", fmt.Errorf("%w: %s", errRefused, c.answer(ticket))
	case ticket == nil || ticket.Ghost || ticket.Phase != ledger.TicketGranted:
		return "", errReservation
	}
	for _, need := range arbiter.PodRequest(s, pod).Needs {
		verdict := c.arbiter.Settled(s, need, r.ticket.Node)
		if verdict.Allowed() && policyOf(s, need).BindAfterAttached {
			verdict = c.arbiter.Explain(s, need, r.ticket.Node, c.now())
			if verdict.First().Code == arbiter.AttachFailed {
				return "", fmt.Errorf("%w: %s", errRefused, verdict.First().Message())
			}
		}
		if !verdict.Allowed() {
			// Even what denies may pass: a claim can be known as bound before its
			// PersistentVolume is known.
			return verdict.First().Message(), nil
		}
	}
	return "", nil
}
