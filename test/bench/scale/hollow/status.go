// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// This is the kubelet's nodeStatusReportFrequency.
const reportEvery = 5 * time.Minute

const leaseNamespace = corev1.NamespaceNodeLease

func (n *Node) register(ctx context.Context) error {
	answer, err := n.config.Disk.Do(ctx, diskapi.Request{
		Call: diskapi.NodeGetInfo, Node: nodeID(n.name), Args: diskapi.Args{Name: n.name, Slots: n.config.Slots},
	})
	if err != nil || answer.Code != okCode {
		return fmt.Errorf("NodeGetInfo: %s %w", answer.Message, err)
	}
	node, err := n.kube.CoreV1().Nodes().Create(ctx, n.object(), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	driver := storagev1.CSINodeDriver{Name: n.config.Driver, NodeID: nodeID(n.name), TopologyKeys: []string{}}
	if n.config.Slots > 0 {
		driver.Allocatable = &storagev1.VolumeNodeResources{Count: new(int32(n.config.Slots))}
	}
	_, err = n.kube.StorageV1().CSINodes().Create(ctx, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, OwnerReferences: []metav1.OwnerReference{owner(node)}},
		Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{driver}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	n.lease, err = n.kube.CoordinationV1().Leases(leaseNamespace).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Namespace: leaseNamespace, OwnerReferences: []metav1.OwnerReference{owner(node)}},
		Spec:       n.leaseSpec(),
	}, metav1.CreateOptions{})
	n.reportDue = time.Now().Add(reportEvery)
	return err
}

const okCode = "OK"

func owner(node *corev1.Node) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
}

func (n *Node) object() *corev1.Node {
	resources := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("250"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        n.name,
			Labels:      map[string]string{corev1.LabelHostname: n.name, corev1.LabelTopologyZone: n.zone, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"},
			Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
		},
		Status: corev1.NodeStatus{
			Capacity: resources, Allocatable: resources, Conditions: conditions(time.Now()), NodeInfo: n.info(),
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: n.name}},
		},
	}
}

func (n *Node) info() corev1.NodeSystemInfo {
	return corev1.NodeSystemInfo{BootID: n.bootID, SystemUUID: "machine-of-" + n.name, KubeletVersion: "v1.37.1", OperatingSystem: "linux", Architecture: "amd64"}
}

func conditions(now time.Time) []corev1.NodeCondition {
	at := metav1.NewTime(now)
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, LastHeartbeatTime: at, LastTransitionTime: at}
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID"),
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady"),
	}
}

func (n *Node) leaseSpec() coordinationv1.LeaseSpec {
	return coordinationv1.LeaseSpec{
		HolderIdentity: new(n.name), LeaseDurationSeconds: new(int32(n.config.Lease / time.Second)), RenewTime: new(metav1.NowMicro()),
	}
}

func (n *Node) renew(ctx context.Context) {
	leases := n.kube.CoordinationV1().Leases(leaseNamespace)
	next := n.lease.DeepCopy()
	next.Spec = n.leaseSpec()
	lease, err := leases.Update(ctx, next, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		lease, err = leases.Get(ctx, n.name, metav1.GetOptions{})
	}
	if err != nil {
		n.failed(ctx, "renew the Lease", err)
		return
	}
	n.lease = lease
}

// Names count as reported once the write is answered.
func (n *Node) report(ctx context.Context) {
	n.look()
	inUse := n.books.inUse()
	now := time.Now()
	if slices.Equal(inUse, n.written) && now.Before(n.reportDue) {
		n.books.report(inUse)
		return
	}
	status := map[string]any{"volumesInUse": inUse}
	if !now.Before(n.reportDue) {
		status["conditions"], status["nodeInfo"] = conditions(now), n.info()
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		n.failed(ctx, "write the status", err)
		return
	}
	node, err := n.kube.CoreV1().Nodes().Patch(ctx, n.name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		n.failed(ctx, "write the status", err)
		return
	}
	if !now.Before(n.reportDue) {
		n.reportDue = now.Add(reportEvery)
	}
	n.written = inUse
	n.attached = attachedAt(node)
	n.books.report(inUse)
}

// A switched-off machine is no failure.
func (n *Node) failed(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		n.config.Log("%s: %s: %v", n.name, what, err)
	}
}
