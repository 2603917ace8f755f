// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestOfTwoDetachesTheWorseIsNamed(t *testing.T) {
	for fails, want := range map[string]Reason{
		"b": {Code: "DetachFailed", Node: "b"},
	} {
		var o Objects
		for i, name := range []string{"a", "b", "c", "d"} {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
				Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}}, Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
			one(&o, node, "v")
			node.Status.VolumesInUse = nil
			o.Nodes = append(o.Nodes, node)
			if name == "d" { // the pod's own
				o.Attachments = o.Attachments[:i]
				continue
			}
			va := o.Attachments[i]
			va.DeletionTimestamp, va.Finalizers = new(metav1.NewTime(noon().Add(-time.Duration(i)*time.Minute))), []string{"attacher"}
			if name == fails {
				va.Status.DetachError = &storagev1.VolumeError{Time: metav1.NewTime(noon()), Message: "busy"}
			}
		}
		o.PersistentVolumes, o.Claims, o.Pods = o.PersistentVolumes[:1], o.Claims[:1], o.Pods[3:]
		o.Pods[0].Status.Phase = corev1.PodPending
		v, _ := NewWorld(o, noon()).VolumeOf("pv-v")
		if v.Reason == nil || v.Reason.Code != want.Code || v.Reason.Node != want.Node {
			t.Errorf("the detach from %q fails: the reason is %+v, want %s from %s", fails, v.Reason, want.Code, want.Node)
		}
	}
}
