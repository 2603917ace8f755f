// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodStarted(t *testing.T) {
	runs := []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	ended := []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
	again := []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}, LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
	waits := []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}}
	at := metav1.NewTime(time.Unix(1000, 0))
	for name, test := range map[string]struct {
		status  corev1.PodStatus
		started bool
		bound   int64
	}{
		"nothing is said":             {corev1.PodStatus{}, false, 0},
		"its containers wait":         {corev1.PodStatus{ContainerStatuses: waits, InitContainerStatuses: waits}, false, 0},
		"an init container runs":      {corev1.PodStatus{ContainerStatuses: waits, InitContainerStatuses: runs}, true, 0},
		"a container has ended":       {corev1.PodStatus{ContainerStatuses: ended}, true, 0},
		"a container starts again":    {corev1.PodStatus{ContainerStatuses: again}, true, 0},
		"an ephemeral container runs": {corev1.PodStatus{EphemeralContainerStatuses: runs}, true, 0},
		"bound":                       {corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: at}}}, false, 1000},
		"not bound":                   {corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, LastTransitionTime: at}}}, false, 0},
	} {
		if fact, err := Pod(&corev1.Pod{Status: test.status}); err != nil || fact.Started != test.started || fact.Bound != test.bound {
			t.Errorf("%s: started %t, bound at %d (%v)", name, fact.Started, fact.Bound, err)
		}
	}
}
