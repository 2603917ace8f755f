// SPDX-License-Identifier: Apache-2.0

package volumestatus

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestPodsThatGoWhileTheyWait(t *testing.T) {
	g := newGate(t, true)
	const few = 128 // too few for a search for gone pods
	words := "0/3 nodes are available: 3 node(s) exceed max volume count: no free slot of driver d (4 of 4 used)."
	for i := range 20 * few {
		pod := g.pod(ledger.PodLive, "1")
		pod.UID, pod.Name = fmt.Sprint("uid-", i), fmt.Sprint("pod-", i)
		g.object = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: pod.Name, UID: types.UID(pod.UID),
			Annotations: map[string]string{v1alpha1.AnnotationVolumeStatus: placeholder}}}
		if i%2 == 0 {
			pod.Node = ""
			g.object.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: words}}
		}
		g.apply(pod)
		if _, err := g.process(t.Context(), pod.UID); err != nil {
			t.Fatal(err)
		}
		g.apply(ledger.PodGone{UID: pod.UID})
	}
	if known := len(g.waiting) + len(g.next); known > 2*few {
		t.Errorf("it remembers %d pods, of which none is there", known)
	}
	if len(g.waiting) == 0 || len(g.next) == 0 {
		t.Errorf("pods waited: %d with a node, %d without", len(g.waiting), len(g.next))
	}
}
