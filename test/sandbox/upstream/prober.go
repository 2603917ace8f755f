// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// prober answers for probes, which nobody can where containers run no programs:
// a container that runs is alive and ready. The kubelet's own would find neither
// and start it again and again; kubemark's calls pods Ready before they run.
type prober struct{}

// UpdatePodStatus sets what the containers' states mean for readiness.
func (prober) UpdatePodStatus(_ context.Context, _ *corev1.Pod, status *corev1.PodStatus) {
	for i := range status.ContainerStatuses {
		running := status.ContainerStatuses[i].State.Running != nil
		status.ContainerStatuses[i].Started, status.ContainerStatuses[i].Ready = &running, running
	}
}

// AddPod does nothing: there are no workers.
func (prober) AddPod(context.Context, *corev1.Pod) {}

// StopLivenessAndStartup does nothing.
func (prober) StopLivenessAndStartup(*corev1.Pod) {}

// RemovePod does nothing.
func (prober) RemovePod(*corev1.Pod) {}

// CleanupPods does nothing.
func (prober) CleanupPods(map[types.UID]sets.Empty) {}
