// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestMigratedAccess(t *testing.T) {
	const (
		rwo = corev1.ReadWriteOnce
		rwx = corev1.ReadWriteMany
		rox = corev1.ReadOnlyMany
	)
	gce := corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "d"}}
	ebs := corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}
	for _, test := range []struct {
		source corev1.PersistentVolumeSource
		modes  []corev1.PersistentVolumeAccessMode
		want   ledger.Access
	}{
		{gce, []corev1.PersistentVolumeAccessMode{rwo}, ledger.AccessNode},
		{gce, []corev1.PersistentVolumeAccessMode{rwx}, ledger.AccessNode},
		{gce, []corev1.PersistentVolumeAccessMode{rwo, rox}, ledger.AccessNode},
		{gce, []corev1.PersistentVolumeAccessMode{rwo, rwx}, ledger.AccessNode},
		{gce, []corev1.PersistentVolumeAccessMode{rox}, ledger.AccessMany},
		{gce, nil, ledger.AccessMany},
		{ebs, []corev1.PersistentVolumeAccessMode{rwo}, ledger.AccessNode},
		{ebs, []corev1.PersistentVolumeAccessMode{rwx}, ledger.AccessMany},
	} {
		pv, err := PersistentVolume(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"},
			Spec: corev1.PersistentVolumeSpec{AccessModes: test.modes, PersistentVolumeSource: test.source}})
		if err != nil || pv.Access != test.want {
			t.Errorf("%v of %+v: access %s (%v), want %s", test.modes, test.source, pv.Access, err, test.want)
		}
	}
}

// An old PersistentVolume names earlier zone labels. kube-scheduler translates them for five in-tree
// plugins, not for vSphere and Azure File.
func TestMigratedAffinity(t *testing.T) {
	in := func(zone string, keys ...string) *corev1.VolumeNodeAffinity {
		var match []corev1.NodeSelectorRequirement
		for _, key := range keys {
			match = append(match, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}})
		}
		return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: match}}}}
	}
	const old, present = corev1.LabelFailureDomainBetaZone, corev1.LabelTopologyZone
	ebs := corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}
	for name, test := range map[string]struct {
		source corev1.PersistentVolumeSource
		own    string // label of the driver, at nodes
		in     *corev1.VolumeNodeAffinity
		labels map[string]string // of the PersistentVolume
		a, b   bool              // nodes in zones a and b
	}{
		"EBS":      {ebs, "topology.ebs.csi.aws.com/zone", in("a", old), nil, true, false},
		"by label": {ebs, "topology.ebs.csi.aws.com/zone", nil, map[string]string{present: "a"}, true, false},
		"GCE PD": {corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "d"}},
			"topology.gke.io/zone", in("a", old), nil, true, false},
		"Azure Disk": {corev1.PersistentVolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{DiskName: "d", DataDiskURI: "/d"}},
			"topology.disk.csi.azure.com/zone", in("a", present), nil, true, false}, // the library leaves it
		"Cinder": {corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{VolumeID: "d"}},
			"topology.cinder.csi.openstack.org/zone", in("a", old), nil, true, false},
		"vSphere": {corev1.PersistentVolumeSource{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{VolumePath: "[ds] d.vmdk"}},
			"topology.csi.vmware.com/zone", in("a", old), nil, false, false},
		"vSphere of today": {corev1.PersistentVolumeSource{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{VolumePath: "[ds] d.vmdk"}},
			"", in("a", present), nil, true, false},
	} {
		pv, err := PersistentVolume(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", Labels: test.labels},
			Spec: corev1.PersistentVolumeSpec{NodeAffinity: test.in, PersistentVolumeSource: test.source}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for zone, want := range map[string]bool{"a": test.a, "b": test.b} {
			node := map[string]string{present: zone, test.own: zone}
			if got := pv.Affinity.Matches("n", node); got != want {
				t.Errorf("%s: a node in zone %s matches: %t, want %t", name, zone, got, want)
			}
		}
	}
}
