// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// csi-translation-lib knows project and zone only with a node's ID. The end of this risk makes the test
// fail.
func TestResidualRiskOfSpellings(t *testing.T) {
	disk := &corev1.GCEPersistentDiskVolumeSource{PDName: "disk-1"}
	volume := func(source corev1.PersistentVolumeSource) ledger.VolumeID {
		pv, err := PersistentVolume(&corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pv", UID: "pv", ResourceVersion: "1", Labels: map[string]string{corev1.LabelTopologyZone: "us-central1-a"}},
			Spec:       corev1.PersistentVolumeSpec{PersistentVolumeSource: source},
		})
		if err != nil {
			t.Fatal(err)
		}
		return pv.Volume
	}
	inline, err := volumeOfInline(&corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{GCEPersistentDisk: disk}}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	spellings := map[ledger.VolumeID]bool{
		volume(corev1.PersistentVolumeSource{GCEPersistentDisk: disk}): true,
		volume(corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: "pd.csi.storage.gke.io", VolumeHandle: "projects/p/zones/us-central1-a/disks/disk-1",
		}}): true,
		inline: true,
	}
	if len(spellings) != 3 {
		t.Errorf("%d volumes: the risk is none any more", len(spellings))
	}
}
