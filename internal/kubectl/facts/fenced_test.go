// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

func TestFencedAt(t *testing.T) {
	at := func(minutes int) *metav1.Time {
		return &metav1.Time{Time: noon().Add(time.Duration(minutes) * time.Minute)}
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{SystemUUID: "m"}}}
	hold := func(fenced ...v1alpha1.FencedNode) *v1alpha1.VolumeHold {
		handle := fmt.Sprintf("h%d", len(n.Status.VolumesInUse))
		n.Status.VolumesInUse = append(n.Status.VolumesInUse, corev1.UniqueVolumeName("kubernetes.io/csi/d^"+handle))
		return &v1alpha1.VolumeHold{Spec: v1alpha1.VolumeHoldSpec{Driver: "d", Handle: handle}, Status: v1alpha1.VolumeHoldStatus{Fenced: fenced}}
	}
	left := hold(v1alpha1.FencedNode{Node: "n", NodeUID: "u", Rule: v1alpha1.ForceDetachNodeShutdown, Since: at(-60)})
	left.Spec.Handle = "left"
	w := NewWorld(Objects{Nodes: []*corev1.Node{n}, Holds: []*v1alpha1.VolumeHold{
		left,
		hold(v1alpha1.FencedNode{Node: "n", NodeUID: "u", Rule: v1alpha1.ForceDetachNodeShutdown, Since: at(2)}),
		hold(v1alpha1.FencedNode{Node: "n", NodeUID: "u", Rule: v1alpha1.ForceDetachNodeShutdown, Since: at(1)}),
		hold(v1alpha1.FencedNode{Node: "n", Rule: v1alpha1.ForceDetachAfterPodGone}, v1alpha1.FencedNode{Node: "other", NodeUID: "o", Rule: v1alpha1.ForceDetachOutOfService}),
		hold(v1alpha1.FencedNode{Node: "n", NodeUID: "u", SystemUUID: "m"}),
		hold(v1alpha1.FencedNode{Node: "n", NodeUID: "u", SystemUUID: "the machine before"}),
		hold(v1alpha1.FencedNode{Node: "n", NodeUID: "an earlier Node", Rule: v1alpha1.ForceDetachOutOfService}),
		hold(),
	}}, noon())
	if got := w.FencedAt(n); got != 4 {
		t.Errorf("%d volumes, want 4", got)
	}
}
