// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
)

func moorageKind(k Kind) bool { return k == Tickets || k == Holds || k == Policies || k == NodeWords }

func kindOf(object runtime.Object) (Kind, bool) {
	switch object.(type) {
	case *v1alpha1.VolumeTicket:
		return Tickets, true
	case *v1alpha1.VolumeHold:
		return Holds, true
	case *v1alpha1.AttachPolicy:
		return Policies, true
	case *v1alpha1.NodeMountReport:
		return NodeWords, true
	case *corev1.Pod:
		return Pods, true
	case *corev1.PersistentVolumeClaim:
		return Claims, true
	case *corev1.PersistentVolume:
		return PersistentVolumes, true
	case *corev1.Node:
		return Nodes, true
	case *storagev1.StorageClass:
		return StorageClasses, true
	case *storagev1.CSIDriver:
		return Drivers, true
	case *storagev1.CSINode:
		return NodeDrivers, true
	case *storagev1.VolumeAttachment:
		return Attachments, true
	}
	return "", false
}

func (o *Observer) connect() error {
	factory := o.config.Factory
	own := factory == nil
	if own {
		factory = informers.NewSharedInformerFactory(o.config.Kube, 0)
		withoutIndexes(factory)
	}
	for _, kind := range o.config.Kinds {
		f := &feed{kind: kind, observer: o, ahead: map[string]answer{}, byUID: kind == Pods}
		f.informer = informerOf(kind, factory, o.config.Moorage)
		f.seen = func(object runtime.Object) (ledger.Event, error) { return o.event(object) }
		f.gone = func(object runtime.Object, m metav1.Object) ledger.Event { return gone(kind, object, m) }
		if own || moorageKind(kind) {
			if err := f.informer.SetTransform(o.slim); err != nil {
				return fmt.Errorf("informer of %s: %w", kind, err)
			}
		}
		registration, err := f.informer.AddEventHandler(f)
		if err != nil {
			return fmt.Errorf("informer of %s: %w", kind, err)
		}
		f.registration = registration
		o.feeds[kind] = f
	}
	return nil
}

// withoutIndexes drops the unused index by namespace, 80 bytes and more for each object.
func withoutIndexes(factory informers.SharedInformerFactory) {
	factory.InformerFor(&corev1.Pod{}, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewPodInformer(c, metav1.NamespaceAll, resync, cache.Indexers{})
	})
	factory.InformerFor(&corev1.PersistentVolumeClaim{}, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewPersistentVolumeClaimInformer(c, metav1.NamespaceAll, resync, cache.Indexers{})
	})
}

func informerOf(k Kind, f informers.SharedInformerFactory, c client.Interface) cache.SharedIndexInformer {
	switch k {
	case Tickets:
		return client.NewVolumeTicketInformer(c)
	case Holds:
		return client.NewVolumeHoldInformer(c)
	case Policies:
		return client.NewAttachPolicyInformer(c)
	case NodeWords:
		return client.NewAllNodeMountReportInformer(c)
	case Pods:
		return f.Core().V1().Pods().Informer()
	case Claims:
		return f.Core().V1().PersistentVolumeClaims().Informer()
	case PersistentVolumes:
		return f.Core().V1().PersistentVolumes().Informer()
	case Nodes:
		return f.Core().V1().Nodes().Informer()
	case StorageClasses:
		return f.Storage().V1().StorageClasses().Informer()
	case Drivers:
		return f.Storage().V1().CSIDrivers().Informer()
	case NodeDrivers:
		return f.Storage().V1().CSINodes().Informer()
	case Attachments:
	}
	return f.Storage().V1().VolumeAttachments().Informer()
}

// event returns an event even with an error.
func (o *Observer) event(object runtime.Object) (ledger.Event, error) {
	switch object := object.(type) {
	case *v1alpha1.VolumeTicket:
		return convert.Ticket(object), nil
	case *v1alpha1.VolumeHold:
		return convert.Hold(object), nil
	case *v1alpha1.AttachPolicy:
		return convert.Policy(object), nil
	case *v1alpha1.NodeMountReport:
		return convert.NodeWord(object), nil
	case *corev1.Pod:
		return convert.Pod(object)
	case *corev1.PersistentVolumeClaim:
		return convert.Claim(object), nil
	case *corev1.PersistentVolume:
		o.noteAttacher(object)
		return convert.PersistentVolume(object)
	case *corev1.Node:
		return convert.Node(object), nil
	case *storagev1.StorageClass:
		return convert.StorageClass(object), nil
	case *storagev1.CSIDriver:
		return convert.Driver(object), nil
	case *storagev1.CSINode:
		return convert.NodeDrivers(object), nil
	case *storagev1.VolumeAttachment:
		return convert.Attachment(object)
	}
	return ledger.PodGone{}, nil
}

func gone(k Kind, object runtime.Object, m metav1.Object) ledger.Event {
	switch k {
	case Pods:
		return ledger.PodGone{UID: string(m.GetUID())}
	case Claims:
		return ledger.ClaimGone{Key: ledger.ClaimKey{Namespace: m.GetNamespace(), Name: m.GetName()}}
	case PersistentVolumes:
		return ledger.PersistentVolumeGone{Name: m.GetName()}
	case StorageClasses:
		return ledger.StorageClassGone{Name: m.GetName()}
	case Drivers:
		return ledger.DriverGone{Name: m.GetName()}
	case Nodes:
		return ledger.NodeGone{Name: ledger.NodeName(m.GetName())}
	case NodeDrivers:
		return ledger.NodeDriversGone{Node: ledger.NodeName(m.GetName())}
	case Attachments:
		return ledger.AttachmentGone{Name: m.GetName()}
	case Policies:
		return ledger.PolicyGone{Name: m.GetName()}
	case NodeWords:
		return ledger.NodeWordGone{Node: ledger.NodeName(m.GetName())}
	case Holds:
		switch hold := object.(type) {
		case *v1alpha1.VolumeHold:
			return ledger.HoldGone{Volume: convert.HoldVolume(hold)}
		case *brief:
			return ledger.HoldGone{Volume: hold.hold.volume}
		}
	case Tickets:
	}
	return ledger.TicketGone{ID: ledger.TicketID{Namespace: m.GetNamespace(), Name: m.GetName()}, UID: string(m.GetUID())}
}
