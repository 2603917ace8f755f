// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A backup tool restores a Node's status: the new kubelet has not written it.
func TestRestoredStatusIsNotBelieved(t *testing.T) {
	made := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "new", CreationTimestamp: metav1.NewTime(made)}}
	n.Status.NodeInfo.BootID = "before"
	n.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/d^other"}
	n.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue,
		LastHeartbeatTime: metav1.NewTime(made.Add(-time.Hour)), LastTransitionTime: metav1.NewTime(made.Add(-2 * time.Hour)),
	}}
	n.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "backup", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", Time: new(metav1.NewTime(made.Add(time.Second))),
		FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:volumesInUse":{},"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:type":{},"f:status":{},"f:lastHeartbeatTime":{}}}}}`),
	}}
	if reporting(n) || !inherited(n) {
		t.Error("a restored status counts as the kubelet's")
	}
	n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(made.Add(time.Minute))
	if !reporting(n) || inherited(n) {
		t.Error("the kubelet is not believed after it has written")
	}
}
