// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// Bind binds a pod that has a reservation, by the version of the pod that it was
// reserved by: a leader that follows can make the bind fail before it gives the
// reservation's slots away. It leaves pods that need no grant to DefaultBinder.
func (p *VolumeHold) Bind(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) *fwk.Status {
	r := p.granted(pod)
	if r == nil {
		return fwk.NewStatus(fwk.Skip)
	}
	return fwk.AsStatus(p.core.book.Bind(ctx, r, p.core.bind))
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
