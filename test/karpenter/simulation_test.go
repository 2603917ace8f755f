// SPDX-License-Identifier: Apache-2.0

package karpenter

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	kwokoptions "sigs.k8s.io/karpenter/kwok/options"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

const (
	driver    = "disk.csi.example.com"
	nodeName  = "worker-1"
	namespace = "shop"
	zone      = "test-zone-a"
	pool      = "default"
)

type situation struct {
	// count is the CSINode's allocatable.count; 0: it states none.
	used, count int
	reason      string
	// foreign VolumeAttachments are at the node, without a pod.
	foreign int
}

type decision struct {
	existing string
	newNodes int
}

func simulate(t *testing.T, s situation) decision {
	t.Helper()
	ctx := kwokoptions.ToContext(options.ToContext(t.Context(), &options.Options{
		CPURequests: 1000, PreferencePolicy: options.PreferencePolicyRespect, MinValuesPolicy: options.MinValuesPolicyStrict,
	}), &kwokoptions.Options{})
	instances, err := kwok.ConstructInstanceTypes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	objects := s.objects()
	kube := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).WithStatusSubresource(&v1.NodePool{}).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithIndex(&v1.NodePool{}, "spec.template.spec.nodeClassRef.group", ofPool(func(r *v1.NodeClassReference) string { return r.Group })).
		WithIndex(&v1.NodePool{}, "spec.template.spec.nodeClassRef.kind", ofPool(func(r *v1.NodeClassReference) string { return r.Kind })).
		WithIndex(&v1.NodePool{}, "spec.template.spec.nodeClassRef.name", ofPool(func(r *v1.NodeClassReference) string { return r.Name })).
		Build()
	clock := clocktesting.NewFakeClock(time.Now())
	cloud := kwok.NewCloudProvider(ctx, kube, instances)
	cluster := state.NewCluster(clock, kube, cloud)
	feed(t, ctx, cluster, objects)
	provisioner := provisioning.NewProvisioner(kube, events.NewRecorder(&record.FakeRecorder{}), cloud, cluster, clock)
	results, err := provisioner.Schedule(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for pod, err := range results.PodErrors {
		t.Logf("Karpenter says of %s: %v", pod.Name, err)
	}
	return decisionOf(results)
}

func ofPool(field func(*v1.NodeClassReference) string) client.IndexerFunc {
	return func(o client.Object) []string {
		return []string{field(o.(*v1.NodePool).Spec.Template.Spec.NodeClassRef)}
	}
}

func feed(t *testing.T, ctx context.Context, cluster *state.Cluster, objects []client.Object) {
	t.Helper()
	for _, object := range objects {
		var err error
		switch o := object.(type) {
		case *v1.NodeClaim:
			cluster.UpdateNodeClaim(o)
		case *corev1.Node:
			err = cluster.UpdateNode(ctx, o)
		case *corev1.Pod:
			err = cluster.UpdatePod(ctx, o)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func decisionOf(results scheduling.Results) decision {
	d := decision{newNodes: len(results.NewNodeClaims)}
	for _, node := range results.ExistingNodes {
		if len(node.Pods) > 0 {
			d.existing = node.Name()
		}
	}
	return d
}

func (s situation) objects() []client.Object {
	list := []client.Object{nodePool(), nodeClaim(), node(), s.csiNode()}
	for i := range s.used {
		list = append(list, volume(fmt.Sprintf("used-%d", i))...)
		pod := podWith(fmt.Sprintf("used-%d", i))
		pod.Spec.NodeName, pod.Status.Phase = nodeName, corev1.PodRunning
		list = append(list, pod, attachment(fmt.Sprintf("used-%d", i)))
	}
	for i := range s.foreign {
		list = append(list, attachment(fmt.Sprintf("foreign-%d", i)))
	}
	waiting := podWith("waiting")
	waiting.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: s.reason}}
	return append(append(list, volume("waiting")...), waiting)
}

func (s situation) csiNode() *storagev1.CSINode {
	d := storagev1.CSINodeDriver{Name: driver, NodeID: nodeName}
	if s.count > 0 {
		count := int32(s.count)
		d.Allocatable = &storagev1.VolumeNodeResources{Count: &count}
	}
	return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: nodeName}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{d}}}
}

func nodePool() *v1.NodePool {
	p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: pool, UID: "pool"}}
	p.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass", Name: pool}
	p.StatusConditions().SetTrue(v1.ConditionTypeValidationSucceeded)
	p.StatusConditions().SetTrue(v1.ConditionTypeNodeClassReady)
	return p
}

func machine() map[string]string {
	return map[string]string{
		corev1.LabelHostname: nodeName, corev1.LabelTopologyZone: zone, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		v1.NodePoolLabelKey: pool, v1.NodeRegisteredLabelKey: "true", v1.NodeInitializedLabelKey: "true", v1.CapacityTypeLabelKey: v1.CapacityTypeOnDemand,
	}
}

const providerID = "kwok://" + nodeName

func nodeClaim() *v1.NodeClaim {
	c := &v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: machine()}}
	c.Status.ProviderID, c.Status.NodeName = providerID, nodeName
	c.StatusConditions().SetTrue(v1.ConditionTypeLaunched)
	c.StatusConditions().SetTrue(v1.ConditionTypeRegistered)
	c.StatusConditions().SetTrue(v1.ConditionTypeInitialized)
	return c
}

func node() *corev1.Node {
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("250")}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: machine()}, Spec: corev1.NodeSpec{ProviderID: providerID},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func volume(name string) []client.Object {
	class := ""
	return []client.Object{
		&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: name, StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
			Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}},
		}},
	}
}

func attachment(name string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-" + name}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: driver, NodeName: nodeName, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name},
	}}
}

func podWith(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, UID: types.UID(name)},
		Spec: corev1.PodSpec{
			SchedulerName: "moorage-scheduler", Containers: []corev1.Container{{Name: "main"}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}
