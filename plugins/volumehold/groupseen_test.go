// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Scheduling queue and index have separate handlers: the pod waits for its group in Permit.
func TestPodThatTheIndexHasNotSeenWaitsForItsGroup(t *testing.T) {
	g := &groups{index: newGroupIndex()}
	with := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a1", UID: "a1", Labels: map[string]string{PodGroupLabel: "a"}},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "a1"}}}}}}
	without := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a2", UID: "a2", Labels: with.Labels}}
	if !g.concerns(with) || g.concerns(without) {
		t.Errorf("it waits with volumes: %t; without: %t", g.concerns(with), g.concerns(without))
	}
}
