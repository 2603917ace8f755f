// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Without a detach its use is unknown: it is not leaving.
func TestSlotOfASilentNode(t *testing.T) {
	now := metav1.NewTime(noon())
	notReady := func(o *Objects, status corev1.ConditionStatus) { o.Nodes[0].Status.Conditions[0].Status = status }
	for name, test := range map[string]struct {
		change func(*Objects)
		want   string
	}{
		"its pod is there":      {func(*Objects) {}, slotUsed},
		"its pod is gone":       {func(o *Objects) { o.Pods = nil; notReady(o, corev1.ConditionUnknown) }, slotUnknown},
		"its pod is ending":     {func(o *Objects) { o.Pods[0].DeletionTimestamp = &now; notReady(o, corev1.ConditionUnknown) }, slotUnknown},
		"the Node is gone":      {func(o *Objects) { o.Pods, o.Nodes = nil, nil }, slotLeaving}, // there is no volumesInUse
		"without an attachment": {func(o *Objects) { o.Pods, o.Attachments = nil, nil; notReady(o, corev1.ConditionUnknown) }, slotUnknown},
		"it is detached": {func(o *Objects) {
			o.Pods = nil
			notReady(o, corev1.ConditionUnknown)
			o.Attachments[0].DeletionTimestamp, o.Attachments[0].Finalizers = &now, []string{"external-attacher/" + driver}
		}, slotLeaving},
		"the node had unmounted it": {func(o *Objects) {
			o.Pods = nil
			notReady(o, corev1.ConditionUnknown)
			o.Nodes[0].Status.VolumesInUse = nil
		}, slotLeaving},
		"the kubelet lives":   {func(o *Objects) { o.Pods = nil; notReady(o, corev1.ConditionFalse) }, slotLeaving},
		"the node is ready":   {func(o *Objects) { o.Pods = nil }, slotLeaving},
		"its pod stays there": {func(o *Objects) { notReady(o, corev1.ConditionUnknown) }, slotUsed},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n-uid"}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		o := Objects{Nodes: []*corev1.Node{node}}
		one(&o, node, "h")
		test.change(&o)
		list := NewWorld(o, noon()).ListSlots()
		if len(list) != 1 || len(list[0].Volumes) != 1 || list[0].Volumes[0].Slot != test.want {
			t.Errorf("%s: %+v, want %s", name, list, test.want)
			continue
		}
		if s := list[0]; s.Taken() != 1 || (s.Unknown == 1) != (test.want == slotUnknown) {
			t.Errorf("%s: it counts %+v", name, s)
		}
	}
}
