// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The flag by which no time forces a detach is read off the pod of the controller
// that has it: without it, the six minutes would be told that never end.
func TestForceDetachFlag(t *testing.T) {
	for args, want := range map[string]bool{
		"--disable-force-detach-on-timeout": true, "--disable-force-detach-on-timeout=true": true,
		"--disable-force-detach-on-timeout=false": false, "--v=2": false,
	} {
		for label, value := range map[string]string{"app.kubernetes.io/part-of": "moorage", "component": kubeControllerManager} {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c", Labels: map[string]string{label: value}},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Args: []string{args}}}}}
			if got := NewWorld(Objects{Pods: []*corev1.Pod{pod}}, time.Unix(0, 0)).Snapshot.NoForceOnTimeout(); got != want {
				t.Errorf("%s=%s with %s: %t", label, value, args, got)
			}
		}
	}
	stranger := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "s"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "s", Args: []string{"--disable-force-detach-on-timeout"}}}}}
	if NewWorld(Objects{Pods: []*corev1.Pod{stranger}}, time.Unix(0, 0)).Snapshot.NoForceOnTimeout() {
		t.Error("anybody's pod counts")
	}
}
