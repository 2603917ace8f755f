// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
)

const ebs = "ebs.csi.aws.com"

func (c *cluster) migrated(node string) {
	c.Put("csinodes", &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: storagev1.CSINodeSpec{
		Drivers: []storagev1.CSINodeDriver{{Name: ebs, NodeID: "i-" + node}}}})
}

func (c *cluster) at(v ledger.VolumeID, node string) bool {
	var n corev1.Node
	c.Get("nodes", "", node, &n)
	reported := slices.ContainsFunc(n.Status.VolumesAttached, func(a corev1.AttachedVolume) bool { return a.Name == convert.UniqueName(v) })
	var a storagev1.VolumeAttachment
	return reported && c.Get("volumeattachments", "", ledger.AttachmentName(v, ledger.NodeName(node)), &a) && a.Status.Attached
}

func (c *cluster) gone(v ledger.VolumeID, node string) bool {
	return !c.at(v, node) && !c.Get("volumeattachments", "", ledger.AttachmentName(v, ledger.NodeName(node)), &storagev1.VolumeAttachment{})
}

func TestMigratedVolume(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.migrated("n1")
	source := corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-0123456789abcdef0"}}
	c.diskOf("data", source)
	volume := ledger.VolumeID{Driver: ebs, Handle: "vol-0123456789abcdef0"}
	c.Put("volumeattachments", &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: ledger.AttachmentName(volume, "n1")},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: ebs, NodeName: "n1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new("data")}},
	})
	c.pod("db", "n1", "data", false)
	stop := c.lead(1)
	c.until("the volume is attached and reported under the driver's name", func() bool { return c.at(volume, "n1") })
	stop()
	c.Remove("pods", "shop", "db")
	c.lead(2)
	c.until("nothing of it is left", func() bool { return c.gone(volume, "n1") })
}

func TestMigratedInlineVolume(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.migrated("n1")
	volume := ledger.VolumeID{Driver: ebs, Handle: "vol-0123456789abcdef1"}
	c.Put("pods", &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "uid-db"},
		Spec: corev1.PodSpec{NodeName: "n1", Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: volume.Handle}}}}},
	})
	stop := c.lead(1)
	c.until("the volume is attached and reported", func() bool { return c.at(volume, "n1") })
	var a storagev1.VolumeAttachment
	c.Get("volumeattachments", "", ledger.AttachmentName(volume, "n1"), &a)
	if inline := a.Spec.Source.InlineVolumeSpec; inline == nil || inline.CSI == nil || inline.CSI.VolumeHandle != volume.Handle {
		t.Errorf("the attachment's source is %+v", a.Spec.Source)
	}
	stop()
	c.Remove("pods", "shop", "db")
	c.lead(2)
	c.until("nothing of it is left", func() bool { return c.gone(volume, "n1") })
}

// The next list finds changes during a broken watch.
func TestEventsAreLost(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.disk("left")
	c.disk("came")
	c.pod("gone", "n1", "left", false)
	c.lead(1)
	c.until("the volume is reported", func() bool { return c.reported("left", "n1") })
	c.Outage(func() {
		c.Remove("pods", "shop", "gone")
		c.pod("new", "n1", "came", false)
	})
	c.until("the new pod has its volume", func() bool { return c.reported("came", "n1") })
	c.until("the old volume is detached", func() bool { return c.attachment("left", "n1") == nil && !c.reported("left", "n1") })
}

func TestPodsOfEveryOrigin(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.Put("csinodes", &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: storagev1.CSINodeSpec{
		Drivers: []storagev1.CSINodeDriver{{Name: driver, NodeID: "n1"}, {Name: ebs, NodeID: "i-n1"}}}})
	inline := ledger.VolumeID{Driver: ebs, Handle: "vol-0123456789abcdef2"}
	for i, change := range []func(*corev1.Pod){
		func(p *corev1.Pod) { p.Spec.SchedulerName = "another" },
		func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "n1"}}
			p.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: inline.Handle}}
		},
		func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: time.Unix(2000, 0)}, []string{"x/y"}
		},
	} {
		name := names("p", 3)[i]
		c.disk(name)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name)},
			Spec: corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "main"}}, Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}}}
		change(pod)
		c.Put("pods", pod)
	}
	c.lead(1)
	c.until("both that live have their volumes", func() bool { return c.reported("p0", "n1") && c.at(inline, "n1") })
	// Terminating before its volume came: it will never mount it.
	for _, w := range c.Writes() {
		if strings.Contains(w, va("p2", "n1")) {
			t.Errorf("an attach for a pod that goes away: %s", w)
		}
	}
}
