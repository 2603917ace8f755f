// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The taint that the node has decides when its pod is deleted, and not another one's time.
func TestEvictedIn(t *testing.T) {
	tolerates := func(key string, seconds int64) corev1.Toleration {
		out := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
		if seconds > 0 {
			out.TolerationSeconds = &seconds
		}
		return out
	}
	const notReady, unreachable = corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable
	for name, test := range map[string]struct {
		ready       corev1.ConditionStatus
		tolerations []corev1.Toleration
		want        string
	}{
		"its time is not over":    {corev1.ConditionUnknown, []corev1.Toleration{tolerates(notReady, 30), tolerates(unreachable, 300)}, "in 3m0s"},
		"its time is over":        {corev1.ConditionUnknown, []corev1.Toleration{tolerates(notReady, 300), tolerates(unreachable, 30)}, "any moment"},
		"not ready":               {corev1.ConditionFalse, []corev1.Toleration{tolerates(unreachable, 30), tolerates(notReady, 300)}, "in 3m0s"},
		"tolerated for ever":      {corev1.ConditionUnknown, []corev1.Toleration{tolerates(notReady, 30), tolerates(unreachable, 0)}, ""},
		"everything is tolerated": {corev1.ConditionUnknown, []corev1.Toleration{{Operator: corev1.TolerationOpExists}}, ""},
		"not tolerated":           {corev1.ConditionUnknown, nil, "any moment"},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n"}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: test.ready, LastTransitionTime: metav1.NewTime(noon().Add(-2 * time.Minute))}}
		pod := podWith("h", "n")
		pod.Spec.Tolerations = test.tolerations
		w := NewWorld(Objects{Nodes: []*corev1.Node{node}, Pods: []*corev1.Pod{pod}}, noon())
		if got, bounded := w.evictedIn(pod, node); got != test.want || bounded != (test.want != "") {
			t.Errorf("%s: %q, %t", name, got, bounded)
		}
	}
}

// The taint out-of-service ends the pods that do not tolerate it, and no finished one.
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
