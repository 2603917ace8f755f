// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// manager writes volumesAttached.
func ready(o *Objects, name, manager string) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", Time: new(metav1.NewTime(noon())),
			FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:volumesAttached":{}}}`)}}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	o.Nodes = append(o.Nodes, node)
	o.NodeDrivers = append(o.NodeDrivers, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
		Name: driver, NodeID: name, Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(10))}}}}})
	return node
}

// Without moorage-controller in Cooperative mode, holds are old and attachments count.
func TestHoldsOfAControllerThatIsDown(t *testing.T) {
	for manager, want := range map[string]string{kubeControllerManager: "", v1alpha1.ControllerName: "worker-3"} {
		var o Objects
		ready(&o, "worker-3", manager)
		one(&o, ready(&o, "worker-2", manager), "v")
		o.Leases.Seen = true // there is no Lease of the controller's
		o.Holds = []*v1alpha1.VolumeHold{{ObjectMeta: metav1.ObjectMeta{Name: "vh"}, Spec: v1alpha1.VolumeHoldSpec{Driver: driver, Handle: "v"},
			Status: v1alpha1.VolumeHoldStatus{PersistentVolumes: []string{"pv-v"}, Holder: &v1alpha1.Holder{Node: "worker-3"}}}}
		v, _ := NewWorld(o, noon()).VolumeOf("pv-v")
		got := ""
		if v.Holder != nil {
			got = v.Holder.Node
		}
		if got != want || v.State != stateInUse && manager == kubeControllerManager {
			t.Errorf("%s reports volumesAttached: the volume is %s, held by %q, want %q", manager, v.State, got, want)
		}
	}
}

func TestRemedyForAHeldVolume(t *testing.T) {
	for name, test := range map[string]struct {
		want   string
		change func(holder, waits *corev1.Pod, node *corev1.Node)
	}{
		"a cordoned node": {"kubectl uncordon worker-1", func(_, _ *corev1.Pod, node *corev1.Node) { node.Spec.Unschedulable = true }},
		"any other":       {"Delete pod shop/v, if it is not wanted", func(_, _ *corev1.Pod, _ *corev1.Node) {}},
	} {
		var o Objects
		node := ready(&o, "worker-1", v1alpha1.ControllerName)
		one(&o, node, "v")
		waits := podWith("v", "")
		waits.Name, waits.UID = "waits", "waits"
		waits.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "worker-2"}
		ready(&o, "worker-2", v1alpha1.ControllerName).Labels = waits.Spec.NodeSelector
		o.Pods = append(o.Pods, waits)
		test.change(o.Pods[0], waits, node)
		x := NewWorld(o, noon()).ExplainPod(waits)
		if x.Cause == nil || !strings.Contains(x.Cause.Do, test.want) {
			t.Errorf("%s: the cause is %+v, want the remedy %q", name, x.Cause, test.want)
		}
	}
}
