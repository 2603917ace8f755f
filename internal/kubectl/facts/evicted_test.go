// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The taint out-of-service ends the pods that do not tolerate it, but no finished pod.
func TestOutOfServiceEnds(t *testing.T) {
	taint := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
	everything := []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	for name, test := range map[string]struct {
		tolerations [][]corev1.Toleration // of each pod there
		want        string
	}{
		"no pod":          {nil, ""},
		"each is ended":   {[][]corev1.Toleration{nil, nil}, ". It ends every pod there (2 pods now)"},
		"one tolerates":   {[][]corev1.Toleration{nil, everything}, ". It ends 1 pod there (1 tolerate it)"},
		"each tolerates":  {[][]corev1.Toleration{everything}, ". It ends no pod there (1 tolerate it)"},
		"another is told": {[][]corev1.Toleration{{{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists}}}, ". It ends every pod there (1 pod now)"},
	} {
		finished := podWith("h", "n")
		finished.Status.Phase = corev1.PodSucceeded
		pods := []*corev1.Pod{finished}
		for _, tolerations := range test.tolerations {
			pod := podWith("h", "n")
			pod.Spec.Tolerations = tolerations
			pods = append(pods, pod)
		}
		w := NewWorld(Objects{Pods: pods}, noon())
		if got := w.ends(&taint, "n"); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
