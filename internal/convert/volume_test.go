// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestUniqueNames(t *testing.T) {
	tests := []struct {
		name string
		want ledger.VolumeID
	}{
		{"kubernetes.io/csi/disk.example.com^vol-1", ledger.VolumeID{Driver: "disk.example.com", Handle: "vol-1"}},
		{"kubernetes.io/csi/disk.example.com^projects/a/disks/b c", ledger.VolumeID{Driver: "disk.example.com", Handle: "projects/a/disks/b c"}},
		{"kubernetes.io/csi/disk.example.com^a^b", ledger.VolumeID{Driver: "disk.example.com", Handle: "a^b"}},
		{"kubernetes.io/iscsi/10.0.0.1:3260:iqn.2001-04.com.example:disk:0", ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "10.0.0.1:3260:iqn.2001-04.com.example:disk:0"}},
		{"kubernetes.io/fc/[50060e801049cfd1]:0", ledger.VolumeID{Driver: "kubernetes.io/fc", Handle: "[50060e801049cfd1]:0"}},
	}
	for _, test := range tests {
		got, ok := VolumeOf(corev1.UniqueVolumeName(test.name))
		if !ok || got != test.want {
			t.Errorf("%q names %v (%v), want %v", test.name, got, ok, test.want)
		}
		if back := UniqueName(got); string(back) != test.name {
			t.Errorf("%v is named %q, want %q", got, back, test.name)
		}
	}
	for _, foreign := range []string{"", "kubernetes.io/csi/", "kubernetes.io/csi/x", "kubernetes.io/csi/x^", "kubernetes.io/csi/^x", "kubernetes.io/fc/", "flexvolume-a/b/c"} {
		if v, ok := VolumeOf(corev1.UniqueVolumeName(foreign)); ok {
			t.Errorf("%q is taken for volume %v", foreign, v)
		}
	}
}

func TestVolumesOfPersistentVolumes(t *testing.T) {
	source := func(s corev1.PersistentVolumeSource) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: s}}
	}
	tests := map[string]struct {
		source  corev1.PersistentVolumeSource
		want    ledger.VolumeID
		wantErr bool
	}{
		"csi": {source: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h"}},
			want: ledger.VolumeID{Driver: "d", Handle: "h"}},
		"csi without a handle": {source: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d"}}, wantErr: true},
		"in-tree EBS": {source: corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://us-east-1a/vol-02399794d890f9375"}},
			want: ledger.VolumeID{Driver: "ebs.csi.aws.com", Handle: "vol-02399794d890f9375"}},
		"in-tree Cinder": {source: corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{VolumeID: "abc"}},
			want: ledger.VolumeID{Driver: "cinder.csi.openstack.org", Handle: "abc"}},
		"iSCSI": {source: corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: "10.0.0.1:3260", IQN: "iqn.x", Lun: 3}},
			want: ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "10.0.0.1:3260:iqn.x:3"}},
		"FC by WWN": {source: corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{TargetWWNs: []string{"a", "b"}, Lun: ptr.To[int32](2)}},
			want: ledger.VolumeID{Driver: "kubernetes.io/fc", Handle: "[a b]:2"}},
		"FC by WWID": {source: corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{WWIDs: []string{"w"}}},
			want: ledger.VolumeID{Driver: "kubernetes.io/fc", Handle: "[w]"}},
		"FC without either": {source: corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{}}, wantErr: true},
		"NFS":               {source: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/"}}},
	}
	for name, test := range tests {
		for _, mode := range []*corev1.PersistentVolumeMode{nil, ptr.To(corev1.PersistentVolumeBlock)} {
			pv := source(test.source)
			pv.Spec.VolumeMode = mode
			fact, err := PersistentVolume(pv)
			if fact.Volume != test.want || (err != nil) != test.wantErr {
				t.Errorf("%s: volume %v (%v), want %v, error %v", name, fact.Volume, err, test.want, test.wantErr)
			}
		}
	}
}

func TestInlineVolumes(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "disk", VolumeSource: corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-02399794d890f9375"}}},
		{Name: "lun", VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "p", IQN: "i", Lun: 1}}},
		{Name: "csi", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c", ReadOnly: true}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		{Name: "broken", VolumeSource: corev1.VolumeSource{FC: &corev1.FCVolumeSource{}}},
	}}}
	disk := ledger.VolumeID{Driver: "ebs.csi.aws.com", Handle: "vol-02399794d890f9375"}
	want := []ledger.PodVolume{
		{Name: "disk", Inline: disk, Access: ledger.AccessNode},
		{Name: "lun", Inline: ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "p:i:1"}, Access: ledger.AccessMany},
		{Name: "data", Claim: "c", ReadOnly: true},
		{Name: "scratch", Claim: "db-scratch", Ephemeral: true},
	}
	fact, err := Pod(pod)
	if err == nil || !strings.Contains(err.Error(), "volume broken") {
		t.Errorf("the broken volume is not told of: %v", err)
	}
	if len(fact.Volumes) != len(want) {
		t.Fatalf("volumes %v, want %v", fact.Volumes, want)
	}
	for i := range want {
		if fact.Volumes[i] != want[i] {
			t.Errorf("volume %d is %+v, want %+v", i, fact.Volumes[i], want[i])
		}
	}
	spec := InlineSource(pod, disk)
	if spec == nil || spec.CSI == nil || spec.CSI.VolumeHandle != disk.Handle {
		t.Errorf("the attachment's source is %+v", spec)
	}
	if other := InlineSource(pod, ledger.VolumeID{Driver: "ebs.csi.aws.com", Handle: "other"}); other != nil {
		t.Errorf("a source for a volume that the pod does not name: %+v", other)
	}
}

func TestAccess(t *testing.T) {
	const (
		rwo  = corev1.ReadWriteOnce
		rwop = corev1.ReadWriteOncePod
		rwx  = corev1.ReadWriteMany
		rox  = corev1.ReadOnlyMany
	)
	tests := []struct {
		modes []corev1.PersistentVolumeAccessMode
		want  ledger.Access
	}{
		{nil, ledger.AccessMany},
		{[]corev1.PersistentVolumeAccessMode{"Future"}, ledger.AccessMany},
		{[]corev1.PersistentVolumeAccessMode{rwo}, ledger.AccessNode},
		{[]corev1.PersistentVolumeAccessMode{rwop}, ledger.AccessPod},
		{[]corev1.PersistentVolumeAccessMode{rwop, rox}, ledger.AccessPod},
		{[]corev1.PersistentVolumeAccessMode{rox}, ledger.AccessMany},
		{[]corev1.PersistentVolumeAccessMode{rwo, rwx}, ledger.AccessMany},
		{[]corev1.PersistentVolumeAccessMode{rwo, rox, rwx}, ledger.AccessMany},
		{[]corev1.PersistentVolumeAccessMode{rwo, rox}, ledger.AccessMany},
	}
	for _, test := range tests {
		if got := access(test.modes); got != test.want {
			t.Errorf("%v is %s, want %s", test.modes, got, test.want)
		}
	}
}

// An inline source always names a single node: only the PersistentVolume gives the access, also after its
// end.
func TestInlineSaysNothingOfAccessWhereAPersistentVolumeDoes(t *testing.T) {
	const handle = "/subscriptions/s/d"
	for name, source := range map[string]corev1.VolumeSource{
		"disk.csi.azure.com":       {AzureDisk: &corev1.AzureDiskVolumeSource{DiskName: "d", DataDiskURI: handle, Kind: ptr.To(corev1.AzureManagedDisk)}},
		"pxd.portworx.com":         {PortworxVolume: &corev1.PortworxVolumeSource{VolumeID: handle}},
		"ebs.csi.aws.com":          {AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: handle}},
		"cinder.csi.openstack.org": {Cinder: &corev1.CinderVolumeSource{VolumeID: handle}},
	} {
		pv, err := PersistentVolume(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", ResourceVersion: "1"}, Spec: corev1.PersistentVolumeSpec{
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: name, VolumeHandle: handle}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		pod, err := Pod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "p", ResourceVersion: "2"}, Spec: corev1.PodSpec{NodeName: "n", Volumes: []corev1.Volume{{Name: "v", VolumeSource: source}}}})
		if err != nil || len(pod.Volumes) != 1 || pod.Volumes[0].Inline != pv.Volume {
			t.Fatalf("%s: the inline source leads to %v (%v), and the PersistentVolume to %v", name, pod.Volumes, err, pv.Volume)
		}
		access := func(events ...ledger.Event) ledger.Access {
			l := ledger.New()
			for _, e := range events {
				l.Apply(time.Unix(1, 0), e)
			}
			return l.Snapshot().Volume(pv.Volume).Access
		}
		for _, events := range [][]ledger.Event{{pv, pod}, {pod, pv}, {pv, pod, ledger.PersistentVolumeGone{Name: "pv"}}} {
			if got := access(events...); got != ledger.AccessMany {
				t.Errorf("%s: a volume of access %s has %s after %T", name, pv.Access, got, events)
			}
		}
		if got := access(pod); got != ledger.AccessNode {
			t.Errorf("%s: a volume that only a pod names has access %s", name, got)
		}
	}
}
