// SPDX-License-Identifier: Apache-2.0

//go:build kubernetes1.34

package upstream

import corev1 "k8s.io/api/core/v1"

func (prober) UpdatePodStatus(_ *corev1.Pod, status *corev1.PodStatus) { ready(status) }

func (prober) AddPod(*corev1.Pod) {}
