// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

func someMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, UID: "u", ResourceVersion: "5", Generation: 3, Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}},
	}
}

func briefs() map[Kind]runtime.Object {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: someMeta("data"), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeName: "pv", StorageClassName: ptr.To("fast"),
	}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
	claim.Namespace = "shop"
	return map[Kind]runtime.Object{
		Claims: claim,
		PersistentVolumes: &corev1.PersistentVolume{ObjectMeta: someMeta("pv"), Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}, StorageClassName: "fast",
			ClaimRef:               &corev1.ObjectReference{Namespace: "shop", Name: "data"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h"}},
		}},
		Attachments: &storagev1.VolumeAttachment{ObjectMeta: someMeta("csi-1"), Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "d", NodeName: "n", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv")},
		}, Status: storagev1.VolumeAttachmentStatus{Attached: true, DetachError: &storagev1.VolumeError{Message: "busy"}}},
		Holds: &v1alpha1.VolumeHold{ObjectMeta: someMeta("vh-1"), Spec: v1alpha1.VolumeHoldSpec{Driver: "d", Handle: "h"}, Status: v1alpha1.VolumeHoldStatus{
			PersistentVolumes: []string{"pv"}, Transitions: 4, Holder: &v1alpha1.Holder{Node: "n", NodeUID: "nu"},
			Conditions: []metav1.Condition{{Type: v1alpha1.HoldDetachPending, Status: metav1.ConditionTrue, Reason: "InUse", LastTransitionTime: metav1.Unix(7, 0)}},
		}},
	}
}

func TestBriefsSayTheSame(t *testing.T) {
	for kind, object := range briefs() {
		o := &Observer{}
		want, err := o.event(object.DeepCopyObject())
		if err != nil {
			t.Fatal(err)
		}
		whole, _ := meta.Accessor(object.DeepCopyObject())
		wantKey, _ := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		wantGone := gone(kind, object.DeepCopyObject(), whole)
		kept, err := o.slim(object)
		if err != nil {
			t.Fatal(err)
		}
		b, ok := kept.(*brief)
		if !ok {
			t.Errorf("%s: a %T is kept", kind, kept)
			continue
		}
		if again, err := o.slim(kept); err != nil || again != kept {
			t.Errorf("%s: passed through a second time it is %v (%v)", kind, again, err)
		}
		if got, _ := b.take(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s says %+v\nwant %+v", kind, got, want)
		}
		if got, _ := b.take(); got != nil {
			t.Errorf("%s says it twice: %+v", kind, got)
		}
		if got, err := cache.DeletionHandlingMetaNamespaceKeyFunc(kept); err != nil || got != wantKey {
			t.Errorf("%s: the key is %q (%v), want %q", kind, got, err, wantKey)
		}
		m, err := meta.Accessor(kept)
		if err != nil || m.GetUID() != whole.GetUID() || m.GetResourceVersion() != whole.GetResourceVersion() {
			t.Errorf("%s: it is %+v (%v)", kind, m, err)
		}
		if got := gone(kind, b, m); !reflect.DeepEqual(got, wantGone) {
			t.Errorf("%s: gone it says %+v, want %+v", kind, got, wantGone)
		}
	}
}

// The next write of a hold needs the times of its conditions and fences.
func TestBriefOfHoldKeepsItsTimes(t *testing.T) {
	hold, _ := briefs()[Holds].(*v1alpha1.VolumeHold)
	hold.Status.Fenced = []v1alpha1.FencedNode{{Node: "n", Since: ptr.To(metav1.Unix(9, 0))}}
	o := &Observer{feeds: map[Kind]*feed{}}
	hold.Name = v1alpha1.VolumeHoldName("d", "h")
	kept, err := o.slim(hold)
	if err != nil {
		t.Fatal(err)
	}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	if err := store.Add(kept); err != nil {
		t.Fatal(err)
	}
	o.feeds[Holds] = &feed{kind: Holds, observer: o, ahead: map[string]answer{}, informer: behind{store: store}}
	got, ok := o.Hold(ledger.VolumeID{Driver: "d", Handle: "h"})
	if !ok || got.UID != "u" || got.Generation != 3 || len(got.Status.Conditions) != 1 || !got.Status.Conditions[0].LastTransitionTime.Time.Equal(time.Unix(7, 0)) {
		t.Errorf("the hold is %+v, %v", got, ok)
	}
	if len(got.Status.Fenced) != 1 || got.Status.Fenced[0].Since.Unix() != 9 {
		t.Errorf("the hold lists %+v as fenced", got.Status.Fenced)
	}
	if _, ok := o.Hold(ledger.VolumeID{Driver: "d", Handle: "other"}); ok {
		t.Error("there is a hold of a volume without one")
	}
}
