// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/bind"
	"github.com/moorage-dev/moorage/plugins/internal/reservation"
)

// Bind binds a pod that has a reservation, by the version of the pod that it was
// reserved by: a leader that follows can make the bind fail before it gives the
// reservation's slots away. It leaves pods that need no grant to DefaultBinder.
//
// A pod that did not wait for a grant in Permit is bound by the controller, or waits for
// its grant here, and for what others wait for in PreBind: the controller may want a ticket
// because of what has come since the node was chosen.
func (p *VolumeHold) Bind(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	r := p.granted(pod)
	if r == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	if r.AtOnce {
		err := p.core.book.BindAtOnce(ctx, r, func(ctx context.Context) error {
			err := p.binder.Bind(ctx, bind.Request{Pod: pod.UID, Version: pod.ResourceVersion, Node: node})
			p.core.metrics.askedToBind(err)
			return err
		})
		if !errors.Is(err, bind.ErrUseTicket) {
			return fwk.AsStatus(err)
		}
		if refusal := p.grant(ctx, r, pod); refusal != "" {
			return fwk.NewStatus(fwk.Unschedulable, refusal)
		}
		if status := p.waitBeforeBind(ctx, r, pod); !status.IsSuccess() {
			return status
		}
	}
	return fwk.AsStatus(p.core.book.Bind(ctx, r, p.core.bind))
}

// grant has a ticket written for a pod that is not bound at once, and waits until it is
// granted; or returns why not.
func (p *VolumeHold) grant(ctx context.Context, r *reservation.Reservation, pod *corev1.Pod) (refusal string) {
	writing, written := p.core.book.Write(p.core.process, r)
	if !written {
		return "the reservation has ended"
	}
	defer context.AfterFunc(ctx, func() { p.core.book.End(r) })()
	v := p.core.obtain(writing, r, p.terms(pod))
	switch {
	case v.ended:
		return "the reservation has ended"
	case v.refusal != "":
		return v.refusal
	}
	p.core.book.While(r, func() { v.note(r) })
	if v.ungranted {
		p.core.toldUngranted(r)
	}
	return ""
}

// bind sends a bind through the framework's queue of API calls, where there is one.
func (c *core) bind(ctx context.Context, binding *corev1.Binding) error {
	calls := c.handle.APICacher()
	if calls == nil {
		return c.handle.ClientSet().CoreV1().Pods(binding.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
	}
	finished, err := calls.BindPod(binding)
	if err != nil {
		return err
	}
	return calls.WaitOnFinish(ctx, finished)
}
