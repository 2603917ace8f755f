// SPDX-License-Identifier: Apache-2.0

//go:build !kubernetes1.34

package upstream

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

func (prober) UpdatePodStatus(_ context.Context, _ *corev1.Pod, status *corev1.PodStatus) {
	ready(status)
}

func (prober) AddPod(context.Context, *corev1.Pod) {}
