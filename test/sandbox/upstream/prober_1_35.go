// SPDX-License-Identifier: Apache-2.0

//go:build !kubernetes1.34

package upstream

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// UpdatePodStatus sets what the containers' states mean for readiness.
func (prober) UpdatePodStatus(_ context.Context, _ *corev1.Pod, status *corev1.PodStatus) {
	ready(status)
}

// AddPod does nothing: there are no workers.
func (prober) AddPod(context.Context, *corev1.Pod) {}
