// SPDX-License-Identifier: Apache-2.0

package objects_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/controller/attacher/objects"
)

type catalog struct {
	pv   *corev1.PersistentVolume
	node *storagev1.CSINode
}

func (c catalog) PersistentVolume(string) *corev1.PersistentVolume { return c.pv }
func (c catalog) CSINode(string) *storagev1.CSINode                { return c.node }

func csiVolume(change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv1"}}
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: "h1"}
	if change != nil {
		change(pv)
	}
	return pv
}

func ofVolume() *storagev1.VolumeAttachment {
	va, pv := attachment(nil, nil), "pv1"
	va.Spec = storagev1.VolumeAttachmentSpec{Attacher: "disk.example.com", NodeName: "n1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}}
	return va
}

func TestCapability(t *testing.T) {
	block := corev1.PersistentVolumeBlock
	for name, c := range map[string]struct {
		reader objects.Reader
		change func(*corev1.PersistentVolume)
		want   string
	}{
		"the default":               {objects.Reader{}, nil, "SINGLE_NODE_WRITER mount fs= flags=[]"},
		"a default filesystem":      {objects.Reader{DefaultFSType: "xfs"}, nil, "SINGLE_NODE_WRITER mount fs=xfs flags=[]"},
		"its own filesystem":        {objects.Reader{DefaultFSType: "xfs"}, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.FSType, pv.Spec.MountOptions = "ext4", []string{"ro"} }, "SINGLE_NODE_WRITER mount fs=ext4 flags=[ro]"},
		"a block device":            {objects.Reader{DefaultFSType: "xfs"}, func(pv *corev1.PersistentVolume) { pv.Spec.VolumeMode = &block }, "SINGLE_NODE_WRITER block"},
		"one pod":                   {objects.Reader{}, modes(corev1.ReadWriteOncePod), "SINGLE_NODE_WRITER mount fs= flags=[]"},
		"one pod, and it can tell":  {objects.Reader{SingleNodeMultiWriter: true}, modes(corev1.ReadWriteOncePod), "SINGLE_NODE_SINGLE_WRITER mount fs= flags=[]"},
		"one node, and it can tell": {objects.Reader{SingleNodeMultiWriter: true}, nil, "SINGLE_NODE_MULTI_WRITER mount fs= flags=[]"},
		"many readers":              {objects.Reader{}, modes(corev1.ReadOnlyMany), "MULTI_NODE_READER_ONLY mount fs= flags=[]"},
		"many writers win":          {objects.Reader{}, modes(corev1.ReadWriteOnce, corev1.ReadWriteMany), "MULTI_NODE_MULTI_WRITER mount fs= flags=[]"},
		"many readers, one writer":  {objects.Reader{}, modes(corev1.ReadWriteOnce, corev1.ReadOnlyMany), "access modes: "},
		"no mode at all":            {objects.Reader{}, modes(), "access modes: "},
	} {
		c.reader.Driver = "disk.example.com"
		a, call := c.reader.Attachment(ofVolume(), catalog{pv: csiVolume(c.change)})
		got := a.NoPublish.Message
		if call.Capability != nil {
			got = text(call.Capability)
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func modes(m ...corev1.PersistentVolumeAccessMode) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) { pv.Spec.AccessModes = m }
}

func text(c *csi.VolumeCapability) string {
	if c.GetBlock() != nil {
		return c.GetAccessMode().GetMode().String() + " block"
	}
	return fmt.Sprintf("%s mount fs=%s flags=%v", c.GetAccessMode().GetMode(), c.GetMount().GetFsType(), c.GetMount().GetMountFlags())
}

func TestReasons(t *testing.T) {
	call := status.Error(codes.ResourceExhausted, "the node is full")
	for name, c := range map[string]struct {
		err  error
		code codes.Code
	}{
		"of a call":         {call, codes.ResourceExhausted},
		"around a call's":   {fmt.Errorf("attach: %w", call), codes.ResourceExhausted},
		"of something else": {errors.New("no such file"), codes.OK},
	} {
		r := objects.Reason(c.err)
		if r.Code != c.code || r.Message != c.err.Error() {
			t.Errorf("%s: %+v", name, r)
		}
		e := objects.VolumeError(r, time.Unix(7, 0))
		if (e.ErrorCode == nil) != (c.code == codes.OK) || e.ErrorCode != nil && *e.ErrorCode != int32(c.code) || e.Time.Unix() != 7 {
			t.Errorf("%s is written as %+v", name, e)
		}
	}
	long := objects.Reason(errors.New(strings.Repeat("ä", 2000)))
	if len(long.Message) > 1024 || len(long.Message) < 1000 || !utf8.ValidString(long.Message) {
		t.Errorf("a long message is cut to %d bytes, valid: %v", len(long.Message), utf8.ValidString(long.Message))
	}
	if !objects.Reason(nil).IsZero() {
		t.Error("no error has a reason")
	}
}

func TestBrokenObjects(t *testing.T) {
	reader := objects.Reader{Driver: "disk.example.com"}
	empty := &corev1.PersistentVolume{}
	gce := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{}}}}
	vsphere := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{}}}}
	nfs := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{}}}}
	noHandle := csiVolume(func(pv *corev1.PersistentVolume) { pv.Spec.CSI.VolumeHandle = "" })
	for name, pv := range map[string]*corev1.PersistentVolume{"none": nil, "empty": empty, "gce": gce, "vsphere": vsphere, "nfs": nfs, "no handle": noHandle} {
		a, _ := reader.Attachment(ofVolume(), catalog{pv: pv, node: &storagev1.CSINode{}})
		if a.Volume == "" && (a.NoPublish.IsZero() || a.NoUnpublish.IsZero()) {
			t.Errorf("%s: no volume, and no reason", name)
		}
		if a.TargetID != "" || a.NoTarget.IsZero() {
			t.Errorf("%s: a node without the driver has the ID %q and the reason %q", name, a.TargetID, a.NoTarget.Message)
		}
	}
}

func TestListedHandle(t *testing.T) {
	reader := objects.Reader{Driver: "pd.csi.storage.gke.io"}
	handle, err := reader.ListedHandle(objects.Call{Handle: "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d", Migrated: true}, "projects/p/zones/z/instances/i")
	if err != nil || handle != "projects/p/zones/z/disks/d" {
		t.Errorf("a migrated volume is listed as %q, %v", handle, err)
	}
	if handle, err := reader.ListedHandle(objects.Call{Handle: "h1"}, "i"); err != nil || handle != "h1" {
		t.Errorf("a CSI volume is listed as %q, %v", handle, err)
	}
	if _, err := reader.ListedHandle(objects.Call{Handle: "odd", Migrated: true}, "odd"); err == nil {
		t.Error("a handle and a node ID that fit nothing are no error")
	}
}
