// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"
)

const driver = "disk.example.com"

func testClaim(edit ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	class := "standard"
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "data", UID: "uid-1", ResourceVersion: "7",
			Annotations: map[string]string{storagehelpers.AnnStorageProvisioner: driver},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")},
			},
		},
	}
	for _, e := range edit {
		e(c)
	}
	return c
}

func testClass(edit ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, Provisioner: driver}
	for _, e := range edit {
		e(c)
	}
	return c
}

func waiting(c *storagev1.StorageClass) {
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	c.VolumeBindingMode = &mode
}

func onNode(c *corev1.PersistentVolumeClaim) {
	c.Annotations[storagehelpers.AnnSelectedNode] = "worker-1"
}

func TestNeedsDisk(t *testing.T) {
	for name, tc := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		class *storagev1.StorageClass
		want  bool
	}{
		"immediate":               {testClaim(), testClass(), true},
		"waits for its consumer":  {testClaim(), testClass(waiting), false},
		"its consumer has a node": {testClaim(onNode), testClass(waiting), true},
		"has a volume": {testClaim(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeName = "pv"
		}), testClass(), false},
		"is being deleted": {testClaim(func(c *corev1.PersistentVolumeClaim) {
			c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}), testClass(), false},
		"not handed over yet": {testClaim(func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = nil
		}), testClass(), false},
		"handed over by the old annotation": {testClaim(func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{storagehelpers.AnnBetaStorageProvisioner: driver}
		}), testClass(), true},
		"handed to another": {testClaim(func(c *corev1.PersistentVolumeClaim) {
			c.Annotations[storagehelpers.AnnStorageProvisioner] = "other"
		}), testClass(), false},
		"class of another": {testClaim(), testClass(func(c *storagev1.StorageClass) { c.Provisioner = "other" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := needsDisk(driver, tc.claim, tc.class); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

func TestVolumeForCopiesWhatTheClaimAsksFor(t *testing.T) {
	mode := corev1.PersistentVolumeBlock
	retain := corev1.PersistentVolumeReclaimRetain
	claim := testClaim(func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeMode = &mode
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	})
	class := testClass(func(c *storagev1.StorageClass) { c.ReclaimPolicy = &retain })
	pv := volumeFor(driver, claim, class, &csi.Volume{VolumeId: "vol-1"})

	if *pv.Spec.VolumeMode != mode || pv.Spec.AccessModes[0] != corev1.ReadWriteOncePod || len(pv.Spec.AccessModes) != 1 {
		t.Errorf("mode %v, access %v", *pv.Spec.VolumeMode, pv.Spec.AccessModes)
	}
	if pv.Spec.CSI.FSType != "" {
		t.Errorf("a block volume has file system %q", pv.Spec.CSI.FSType)
	}
	if ref := pv.Spec.ClaimRef; ref.UID != "uid-1" || ref.Namespace != "default" || ref.Name != "data" {
		t.Errorf("claimRef %v", ref)
	}
	if pv.Annotations[storagehelpers.AnnDynamicallyProvisioned] != driver || pv.Spec.CSI.VolumeHandle != "vol-1" {
		t.Errorf("annotations %v, source %v", pv.Annotations, pv.Spec.CSI)
	}
	if len(pv.Finalizers) != 0 {
		t.Errorf("a volume that is retained has finalizers %v", pv.Finalizers)
	}
	if pv.Spec.NodeAffinity != nil {
		t.Errorf("node affinity %v", pv.Spec.NodeAffinity)
	}
	if size := pv.Spec.Capacity[corev1.ResourceStorage]; size.String() != "2Gi" {
		t.Errorf("capacity %s", size.String())
	}
}

func TestCreateRequestModes(t *testing.T) {
	for mode, want := range map[corev1.PersistentVolumeAccessMode]csi.VolumeCapability_AccessMode_Mode{
		corev1.ReadWriteOnce:    csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER,
		corev1.ReadWriteOncePod: csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
		corev1.ReadOnlyMany:     csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY,
		corev1.ReadWriteMany:    csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER,
	} {
		r := createRequest(testClaim(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{mode}
		}), testClass())
		if got := r.GetVolumeCapabilities()[0].GetAccessMode().GetMode(); got != want {
			t.Errorf("%s: %s, want %s", mode, got, want)
		}
		if r.GetCapacityRange().GetRequiredBytes() != 2<<30 {
			t.Errorf("size %d", r.GetCapacityRange().GetRequiredBytes())
		}
	}
}

func TestReclaimable(t *testing.T) {
	released := func(edit func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
		pv := volumeFor(driver, testClaim(), testClass(), &csi.Volume{VolumeId: "vol-1"})
		pv.Status.Phase = corev1.VolumeReleased
		edit(pv)
		return pv
	}
	for name, tc := range map[string]struct {
		pv   *corev1.PersistentVolume
		want bool
	}{
		"released": {released(func(*corev1.PersistentVolume) {}), true},
		"released and being deleted": {released(func(pv *corev1.PersistentVolume) {
			pv.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}), true},
		"reclaimed, held by others": {released(func(pv *corev1.PersistentVolume) {
			pv.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			pv.Finalizers = []string{"kubernetes.io/pv-protection"}
		}), false},
		"bound": {released(func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeBound }), false},
		"retained": {released(func(pv *corev1.PersistentVolume) {
			pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}), false},
		"made by hand":      {released(func(pv *corev1.PersistentVolume) { pv.Annotations = nil }), false},
		"of another driver": {released(func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "other" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reclaimable(driver, tc.pv); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
