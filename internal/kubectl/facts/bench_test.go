// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// large is a cluster of many nodes, each with ten pods of one volume, plus a pod that no node can take.
func large(nodes int) Objects {
	o := Objects{Classes: []*storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Provisioner: driver, VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer)}}}
	for n := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", n), UID: types.UID(fmt.Sprint(n)),
			Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		for i := range 10 {
			id := fmt.Sprintf("%d-%d", n, i)
			one(&o, node, id)
		}
		o.Nodes = append(o.Nodes, node)
		o.NodeDrivers = append(o.NodeDrivers, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node.Name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
			Name: driver, NodeID: node.Name, Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(10))},
		}}}})
	}
	o.Claims = append(o.Claims, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "last", UID: "last"}, Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new("disk")}})
	o.Pods = append(o.Pods, podWith("last", ""))
	return o
}

func podWith(id, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: id, UID: types.UID(id)},
		Spec: corev1.PodSpec{NodeName: node, Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: id},
		}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

func one(o *Objects, node *corev1.Node, id string) {
	pv := "pv-" + id
	o.PersistentVolumes = append(o.PersistentVolumes, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: pv}, Spec: corev1.PersistentVolumeSpec{
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: id}},
		ClaimRef:               &corev1.ObjectReference{Namespace: "shop", Name: id, UID: types.UID(id)},
	}})
	o.Claims = append(o.Claims, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: id, UID: types.UID(id)},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: pv}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}})
	pod := podWith(id, node.Name)
	pod.Status.Phase = corev1.PodRunning
	o.Pods = append(o.Pods, pod)
	name := ledger.AttachmentName(ledger.VolumeID{Driver: driver, Handle: id}, ledger.NodeName(node.Name))
	o.Attachments = append(o.Attachments, &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec:   storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: node.Name, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
		Status: storagev1.VolumeAttachmentStatus{Attached: true}})
	unique := corev1.UniqueVolumeName("kubernetes.io/csi/" + driver + "^" + id)
	node.Status.VolumesInUse = append(node.Status.VolumesInUse, unique)
	node.Status.VolumesAttached = append(node.Status.VolumesAttached, corev1.AttachedVolume{Name: unique})
}

func leaving(w *World, node string) DrainAsk {
	ask := DrainAsk{Node: node, Leave: map[types.UID]bool{}}
	for _, p := range w.Pods {
		if p.Spec.NodeName == node {
			ask.Leave[p.UID] = true
		}
	}
	return ask
}

// A large cluster is computed in the time that a person waits for: listing it takes longer.
func BenchmarkLarge(b *testing.B) {
	o := large(1000)
	w := NewWorld(o, noon())
	last := w.Pod("shop", "last")
	for name, do := range map[string]func(){
		"world": func() { NewWorld(o, noon()) }, "explain": func() { w.ExplainPod(last) }, "nodes": func() { w.ListSlots() },
		"volumes": func() { w.ListVolumes("") }, "waits": func() { w.ListWaits() }, "drain": func() { w.DrainPlan("node-1") },
		"drain now": func() { w.DrainNow(leaving(w, "node-1")) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				do()
			}
		})
	}
}
