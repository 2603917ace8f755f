// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/apitest"
)

func storage(size string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
}

// Only claims larger than their PersistentVolume are kept as operations.
func TestWorksAreFew(t *testing.T) {
	server := apitest.Start(t)
	claim := func(name, size string) {
		server.Put("persistentvolumeclaims", &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "u"},
			Spec: corev1.PersistentVolumeClaimSpec{VolumeName: name, Resources: corev1.VolumeResourceRequirements{Requests: storage(size)}}})
	}
	volume := func(name, size string) {
		server.Put("persistentvolumes", &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
			Capacity: storage(size), ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: name, UID: "u"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: name}}}})
	}
	claim("large", "1Gi")
	volume("large", "1Gi")
	claim("small", "2Gi")
	volume("small", "1Gi")
	o := start(t, server, true)
	works := func(want int) func(ledger.Snapshot) bool {
		return func(ledger.Snapshot) bool { return len(o.Works()) == want }
	}
	o.until("one of two is to be expanded", works(1))
	if w := o.Works()[0]; w.Object.Name != "small" || w.Wants != 2<<30 {
		t.Errorf("%+v", w)
	}
	claim("early", "1Gi")
	o.until("one whose PersistentVolume is not seen may be", works(2))
	volume("early", "1Gi")
	o.until("it is not", works(1))
	claim("large", "3Gi")
	o.until("one that is asked for later is", works(2))
	volume("large", "3Gi")
	volume("small", "2Gi")
	o.until("none is when all are as large as they are to be", works(0))
}
