// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/internal/pace"
	"github.com/moorage-dev/moorage/test/sandbox"
)

const (
	oldDriver = "old.example.com"
	oldPrefix = "old-"
)

// These are API objects only; no kubelet runs there, but the controller can't tell.
type estate struct {
	nodes, perNode int
}

func (e estate) volumes() int { return e.nodes * e.perNode }

func (e estate) nodeOf(volume int) string { return fmt.Sprintf("%s%03d", oldPrefix, volume%e.nodes) }

func (e estate) attachmentOf(volume int) string {
	return ledger.AttachmentName(ledger.VolumeID{Driver: oldDriver, Handle: oldName(volume)}, ledger.NodeName(e.nodeOf(volume)))
}

func oldName(volume int) string { return fmt.Sprintf("%s%05d", oldPrefix, volume) }

// kube-controller-manager is away too: it would call claims lost before it sees their volumes.
func (a *adopting) settle() {
	a.must(a.Cluster.Kill(a.ctx, sandbox.ControllerManager))
	// The API server follows a policy until it hears that it is gone.
	a.until("volumesAttached is anybody's to write", func() error { return a.oldNode(a.ctx, 0) })
	a.parallel(a.nodes-1, func(ctx context.Context, i int) error { return a.oldNode(ctx, i+1) })
	a.parallel(a.volumes(), a.oldVolume)
	a.must(a.Cluster.StartAgain(sandbox.ControllerManager))
	a.until("kube-controller-manager has seen that the nodes are Ready", func() error {
		for i := range a.nodes {
			node := a.View.Node(a.nodeOf(i))
			if node == nil || slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeNotReady }) {
				return fmt.Errorf("not that %s is", a.nodeOf(i))
			}
		}
		return nil
	})
}

func (a *adopting) parallel(n int, do func(ctx context.Context, i int) error) {
	a.must(pace.Rate{Hands: 32}.Each(a.ctx, n, do))
}

func (a *adopting) oldNode(ctx context.Context, i int) error {
	now := metav1.Now()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: a.nodeOf(i), Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}},
		Spec:       corev1.NodeSpec{Unschedulable: true}, // no pod would run there
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, // as its kubelet writes it once the Node is there
			LastHeartbeatTime: metav1.NewTime(now.Add(time.Minute)), LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
		}}},
	}
	for v := i; v < a.volumes(); v += a.nodes {
		name := corev1.UniqueVolumeName("kubernetes.io/csi/" + oldDriver + "^" + oldName(v))
		node.Status.VolumesInUse = append(node.Status.VolumesInUse, name)
		node.Status.VolumesAttached = append(node.Status.VolumesAttached, corev1.AttachedVolume{Name: name})
	}
	if _, err := a.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create %s: %w", node.Name, err)
	}
	_, err := a.Client.StorageV1().CSINodes().Create(ctx, &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
			Name: oldDriver, NodeID: node.Name, Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(2 * a.perNode))},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create CSINode of %s: %w", node.Name, err)
	}
	return nil
}

func (a *adopting) oldVolume(ctx context.Context, i int) error {
	if err := a.oldClaim(ctx, i); err != nil {
		return err
	}
	attachment, err := a.Client.StorageV1().VolumeAttachments().Create(ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: a.attachmentOf(i)},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: oldDriver, NodeName: a.nodeOf(i), Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new(oldName(i))},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create VolumeAttachment of %s: %w", oldName(i), err)
	}
	attachment.Status.Attached = true
	if _, err := a.Client.StorageV1().VolumeAttachments().UpdateStatus(ctx, attachment, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("attach %s: %w", oldName(i), err)
	}
	pod := sandbox.Pod(oldName(i), oldName(i))
	pod.Spec.NodeName = a.nodeOf(i)
	return a.CreatePod(ctx, pod)
}

// No other controller has anything to write on the bound objects.
func (a *adopting) oldClaim(ctx context.Context, i int) error {
	name, claims := oldName(i), a.Client.CoreV1().PersistentVolumeClaims(a.Namespace)
	claim := sandbox.Claim(name, corev1.ReadWriteOnce)
	claim.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	claim.Spec.VolumeName, claim.Spec.StorageClassName = name, new("")
	claim, err := claims.Create(ctx, claim, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create claim %s: %w", name, err)
	}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: claim.Spec.AccessModes, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		ClaimRef:                      &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: a.Namespace, Name: name, UID: claim.UID},
		PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: oldDriver, VolumeHandle: name}},
	}}
	if pv, err = a.Client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create PersistentVolume %s: %w", name, err)
	}
	pv.Status.Phase = corev1.VolumeBound
	if _, err := a.Client.CoreV1().PersistentVolumes().UpdateStatus(ctx, pv, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("bind PersistentVolume %s: %w", name, err)
	}
	claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: pv.Spec.AccessModes, Capacity: pv.Spec.Capacity}
	if _, err := claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("bind claim %s: %w", name, err)
	}
	return nil
}

// The protection controller would take long for so many finalizers.
func (a *adopting) clear() {
	a.must(a.Cluster.Kill(a.ctx, sandbox.MoorageController)) // its caches would lag behind, and it would make attachments again
	core, now := a.Client.CoreV1(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
	claims, unprotected := core.PersistentVolumeClaims(a.Namespace), []byte(`{"metadata":{"finalizers":null}}`)
	a.parallel(a.volumes(), func(ctx context.Context, i int) error {
		name := oldName(i)
		errs := []error{
			core.Pods(a.Namespace).Delete(ctx, name, now),
			a.Client.StorageV1().VolumeAttachments().Delete(ctx, a.attachmentOf(i), metav1.DeleteOptions{}),
			claims.Delete(ctx, name, metav1.DeleteOptions{}),
			core.PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{}),
		}
		_, err := claims.Patch(ctx, name, types.MergePatchType, unprotected, metav1.PatchOptions{})
		errs = append(errs, ifThere(err))
		_, err = core.PersistentVolumes().Patch(ctx, name, types.MergePatchType, unprotected, metav1.PatchOptions{})
		return errors.Join(append(errs, ifThere(err))...)
	})
	a.parallel(a.nodes, func(ctx context.Context, i int) error {
		return core.Nodes().Delete(ctx, a.nodeOf(i), metav1.DeleteOptions{})
	})
}

func ifThere(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
