// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestReporting(t *testing.T) {
	registered := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	later := metav1.NewTime(registered.Add(7 * time.Second))
	condition := func(typ corev1.NodeConditionType, status corev1.ConditionStatus, heartbeat, transition metav1.Time) corev1.NodeCondition {
		return corev1.NodeCondition{Type: typ, Status: status, LastHeartbeatTime: heartbeat, LastTransitionTime: transition}
	}
	tests := []struct {
		name       string
		conditions []corev1.NodeCondition
		inUse      []corev1.UniqueVolumeName
		want       bool
	}{
		{name: "no status at all"},
		{name: "registered", conditions: []corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, registered, registered),
			condition(corev1.NodeReady, corev1.ConditionFalse, registered, registered)}},
		{name: "registered, never heard of, marked Unknown by the lifecycle controller", conditions: []corev1.NodeCondition{
			condition(corev1.NodeReady, corev1.ConditionUnknown, registered, later)}},
		{name: "made by the lifecycle controller with a clock that is behind", conditions: []corev1.NodeCondition{
			condition(corev1.NodeReady, corev1.ConditionUnknown, later, registered)}},
		{name: "became Ready", want: true, conditions: []corev1.NodeCondition{
			condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, later, registered),
			condition(corev1.NodeReady, corev1.ConditionTrue, later, later)}},
		{name: "a network provider's condition", conditions: []corev1.NodeCondition{
			condition(corev1.NodeNetworkUnavailable, corev1.ConditionFalse, later, registered),
			condition(corev1.NodeReady, corev1.ConditionTrue, registered, registered)}},
		{name: "reports a volume in use within its first second", want: true, inUse: []corev1.UniqueVolumeName{"kubernetes.io/csi/d^h"},
			conditions: []corev1.NodeCondition{condition(corev1.NodeReady, corev1.ConditionTrue, registered, registered)}},
	}
	for _, test := range tests {
		node := &corev1.Node{Status: corev1.NodeStatus{Conditions: test.conditions, VolumesInUse: test.inUse}}
		if got := Node(node).Reporting; got != test.want {
			t.Errorf("%s: reporting %v, want %v", test.name, got, test.want)
		}
	}
}

func TestNodeLease(t *testing.T) {
	renewed := metav1.NewMicroTime(time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	if got := NodeLease(lease); got != (ledger.NodeLease{Node: "n"}) {
		t.Errorf("a Lease that nobody has renewed is %+v", got)
	}
	lease.Spec.RenewTime = &renewed
	if got := NodeLease(lease); got != (ledger.NodeLease{Node: "n", Renewed: renewed.UnixNano() / 1000}) {
		t.Errorf("the Lease is %+v", got)
	}
}

func TestNode(t *testing.T) {
	v1 := ledger.VolumeID{Driver: "d", Handle: "1"}
	v2 := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "p:i:1"}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", ResourceVersion: "7", Annotations: map[string]string{annotationManaged: "true"}},
		Spec: corev1.NodeSpec{Unschedulable: true, ProviderID: "cloud://n", Taints: []corev1.Taint{
			{Key: "node.kubernetes.io/out-of-service", Effect: corev1.TaintEffectNoExecute}}},
		Status: corev1.NodeStatus{
			Conditions:   []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			NodeInfo:     corev1.NodeSystemInfo{SystemUUID: "machine", BootID: "boot"},
			VolumesInUse: []corev1.UniqueVolumeName{UniqueName(v1), UniqueName(v1), "other/plugin"},
			VolumesAttached: []corev1.AttachedVolume{
				{Name: UniqueName(v2)}, {Name: UniqueName(v2), DevicePath: "/dev/x"}, {Name: "other/plugin"}},
		},
	}
	got := Node(node)
	if got.Name != "n" || got.UID != "u" || got.Version != "7" || got.Ready != ledger.ReadyTrue ||
		!got.OutOfService || !got.Managed || !got.Draining || !got.Reporting {
		t.Errorf("the node is %+v", got)
	}
	if got.SystemUUID != "machine" || got.BootID != "boot" || got.ProviderID != "cloud://n" {
		t.Errorf("the machine is %q %q %q", got.SystemUUID, got.BootID, got.ProviderID)
	}
	// Doubled entries count once: the ledger compares lengths.
	if !slices.Equal(got.InUse, []ledger.VolumeID{v1}) || !slices.Equal(got.Reported, []ledger.VolumeID{v2}) {
		t.Errorf("in use %v, reported %v", got.InUse, got.Reported)
	}
	empty := Node(&corev1.Node{})
	if empty.Ready != ledger.ReadyUnknown || empty.Managed || empty.OutOfService || empty.Draining || empty.Reporting {
		t.Errorf("an empty node is %+v", empty)
	}
}

func TestNodeDrivers(t *testing.T) {
	got := NodeDrivers(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: "none", NodeID: "i-1"},
		{Name: "nil", Allocatable: &storagev1.VolumeNodeResources{}},
		{Name: "zero", Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To[int32](0)}},
		{Name: "ten", Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To[int32](10)}},
	}}})
	want := []ledger.DriverOnNode{
		{Name: "none", NodeID: "i-1", Limit: ledger.NoLimit}, {Name: "nil", Limit: ledger.NoLimit},
		{Name: "zero", Limit: 0}, {Name: "ten", Limit: 10},
	}
	if !slices.Equal(got.Drivers, want) {
		t.Errorf("drivers %+v, want %+v", got.Drivers, want)
	}
}
