// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"unique"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/operation"
)

// brief stands in an informer's store for an object of which only the facts matter: PersistentVolumes,
// claims, VolumeAttachments and VolumeHolds, of which large clusters have hundreds of thousands. It has
// the object's identity and version; its content is in the ledger.
//
//	Invariant: what the store reads does not change; event is the handler's
//	Invariant: name, UID and version are text[:uid], text[uid:version] and text[version:]. One text in
//	place of three is less work for the garbage collector, in each of millions.
type brief struct {
	noMeta
	namespace    string // shared
	text         string
	uid, version uint32
	// event is for the one handler to take; then nil, to keep nothing twice.
	event ledger.Event
	flex  bool            // a PersistentVolume of a FlexVolume
	hold  *briefHold      // of a VolumeHold
	work  *operation.Work // of a claim; nil: no operation of a driver
}

// briefHold is the part of a VolumeHold that its next write needs.
type briefHold struct {
	volume     ledger.VolumeID
	generation int64
	conditions []metav1.Condition
	fenced     []v1alpha1.FencedNode // the start of each entry does not change
}

var _ runtime.Object = (*brief)(nil)

// GetObjectKind implements runtime.Object. Objects decoded into their own type have no kind either.
func (b *brief) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

func (b *brief) DeepCopyObject() runtime.Object {
	c := *b
	if b.hold != nil {
		hold := *b.hold
		hold.conditions = nil
		for i := range b.hold.conditions {
			hold.conditions = append(hold.conditions, *b.hold.conditions[i].DeepCopy())
		}
		hold.fenced = nil
		for i := range b.hold.fenced {
			hold.fenced = append(hold.fenced, *b.hold.fenced[i].DeepCopy())
		}
		c.hold = &hold
	}
	return &c
}

func (b *brief) take() (ledger.Event, *operation.Work) {
	e, w := b.event, b.work
	b.event, b.work = nil, nil
	return e, w
}

func (b *brief) holdObject() *v1alpha1.VolumeHold {
	return &v1alpha1.VolumeHold{
		ObjectMeta: metav1.ObjectMeta{Name: b.GetName(), UID: b.GetUID(), Generation: b.hold.generation},
		Spec:       v1alpha1.VolumeHoldSpec{Driver: b.hold.volume.Driver, Handle: b.hold.volume.Handle},
		Status:     v1alpha1.VolumeHoldStatus{Conditions: b.hold.conditions, Fenced: b.hold.fenced},
	}
}

func (o *Observer) inBrief(whole runtime.Object) (*brief, bool) {
	var b *brief
	switch object := whole.(type) {
	case *corev1.PersistentVolumeClaim:
		share(&object.Namespace)
		if object.Spec.StorageClassName != nil {
			share(object.Spec.StorageClassName)
		}
		b = briefOf(object)
		b.work = operation.ClaimOf(object)
	case *corev1.PersistentVolume:
		share(&object.Spec.StorageClassName)
		if ref := object.Spec.ClaimRef; ref != nil {
			share(&ref.Namespace)
		}
		if csi := object.Spec.CSI; csi != nil {
			share(&csi.Driver)
		}
		b = briefOf(object)
		b.flex = object.Spec.FlexVolume != nil
	case *storagev1.VolumeAttachment:
		share(&object.Spec.Attacher)
		share(&object.Spec.NodeName)
		b = briefOf(object)
	case *v1alpha1.VolumeHold:
		share(&object.Spec.Driver)
		if holder := object.Status.Holder; holder != nil {
			share(&holder.Node)
			holder.NodeUID = types.UID(unique.Make(string(holder.NodeUID)).Value())
			share(&holder.BootID)
		}
		b = briefOf(object)
		b.hold = &briefHold{convert.HoldVolume(object), object.Generation, object.Status.Conditions, object.Status.Fenced}
	default:
		return nil, false
	}
	event, err := o.event(whole)
	if err != nil {
		klog.Background().Error(err, "An object names a volume that nobody can attach", "name", b.GetName(), "namespace", b.namespace)
	}
	b.event = event
	return b, true
}

func briefOf(m metav1.Object) *brief {
	name, uid := m.GetName(), string(m.GetUID())
	return &brief{
		namespace: m.GetNamespace(), text: name + uid + m.GetResourceVersion(),
		uid: uint32(len(name)), version: uint32(len(name) + len(uid)),
	}
}

// share saves memory: many objects name few drivers, classes, namespaces and nodes.
func share(s *string) { *s = unique.Make(*s).Value() }
