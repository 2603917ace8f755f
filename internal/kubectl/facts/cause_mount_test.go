// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Whoever can't mount a volume is asked: a CSI driver's node plugin where there is one, else the kubelet
// and the tools of the node that its own plugin needs.
func TestMountAdviceNamesWhoMounts(t *testing.T) {
	const driver, kubelet, iscsi, fc = "the log of the driver's node plugin at n", "The kubelet mounts it by itself, without a CSI driver: its log at n has more",
		"itself (iSCSI), without a CSI driver: its log at n has more, and those of iscsid and multipathd there", "itself (Fibre Channel), without a CSI driver: its log at n has more, and that of multipathd there"
	pv := func(source corev1.PersistentVolumeSource) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source}}
	}
	for name, test := range map[string]struct {
		pv     *corev1.PersistentVolume
		inline *corev1.VolumeSource
		want   string
	}{
		"CSI":              {pv: pv(corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h"}}), want: driver},
		"iSCSI":            {pv: pv(corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{}}), want: iscsi},
		"FC":               {pv: pv(corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{}}), want: fc},
		"NFS":              {pv: pv(corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{}}), want: kubelet},
		"migrated":         {pv: pv(corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}), want: driver},
		"not known":        {want: driver},
		"inline iSCSI":     {inline: &corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{}}, want: iscsi},
		"inline FC":        {inline: &corev1.VolumeSource{FC: &corev1.FCVolumeSource{}}, want: fc},
		"inline CSI":       {inline: &corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}}, want: driver},
		"a ConfigMap":      {inline: &corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}, want: kubelet},
		"inline, migrated": {inline: &corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "pd"}}, want: driver},
		"a claim of the PersistentVolume's name": {
			pv:     pv(corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{}}),
			inline: &corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}, want: iscsi},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}}
		if test.inline != nil {
			pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: *test.inline}}
		}
		var o Objects
		if test.pv != nil {
			o.PersistentVolumes = []*corev1.PersistentVolume{test.pv}
		}
		e := &corev1.Event{Reason: "FailedMount", Message: `MountVolume.WaitForAttach failed for volume "data" : failed to get any path for iscsi disk`}
		if got := NewWorld(o, noon()).mountEvent(pod, e).Do; !strings.Contains(got, test.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
