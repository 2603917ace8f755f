// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Node returns the newest known version. Read only.
func (o *Observer) Node(name ledger.NodeName) (*corev1.Node, bool) {
	return object[*corev1.Node](o.feeds[Nodes], string(name))
}

// Pod returns the newest known version. Read only.
func (o *Observer) Pod(namespace, name string) (*corev1.Pod, bool) {
	found, _ := o.feeds[Pods].get(namespace + "/" + name)
	switch pod := found.(type) {
	case *corev1.Pod:
		return pod, true
	case *keptPod:
		return pod.pod(), true
	}
	return nil, false
}

// Hold returns the part of the newest known VolumeHold for its next write: generation, conditions, fences
// and identity. Read only.
func (o *Observer) Hold(v ledger.VolumeID) (*v1alpha1.VolumeHold, bool) {
	found, _ := o.feeds[Holds].get(v1alpha1.VolumeHoldName(v.Driver, v.Handle))
	switch hold := found.(type) {
	case *v1alpha1.VolumeHold:
		return hold, true
	case *brief:
		return hold.holdObject(), true
	}
	return nil, false
}

// Ticket returns the newest known version. Read only.
func (o *Observer) Ticket(id ledger.TicketID) (*v1alpha1.VolumeTicket, bool) {
	return object[*v1alpha1.VolumeTicket](o.feeds[Tickets], id.Namespace+"/"+id.Name)
}

// Policy returns the newest known version. Read only.
func (o *Observer) Policy(name string) (*v1alpha1.AttachPolicy, bool) {
	return object[*v1alpha1.AttachPolicy](o.feeds[Policies], name)
}

func object[T any](f *feed, key string) (T, bool) {
	var none T
	found, ok := f.get(key)
	if !ok {
		return none, false
	}
	typed, ok := found.(T)
	return typed, ok
}

const attacherPrefix = "external-attacher/"

func (o *Observer) noteAttacher(pv *corev1.PersistentVolume) {
	for _, f := range pv.Finalizers {
		if strings.HasPrefix(f, attacherPrefix) {
			o.attacher.LoadOrStore(f, true)
		}
	}
}

// AttacherCalls says whether a driver's external-attacher is known to call the driver and to remove its
// finalizers: only then it puts its finalizer on PersistentVolumes. Without ControllerPublish it does
// neither (external-attacher pkg/controller/trivial_handler.go).
func (o *Observer) AttacherCalls(driver string) bool {
	_, ok := o.attacher.Load(convert.AttacherFinalizer(driver))
	return ok
}

// FlexVolume is a PersistentVolume or a pod with a FlexVolume.
type FlexVolume struct {
	Pod  *ledger.Pod // nil for a PersistentVolume
	Name string      // of the PersistentVolume
	UID  types.UID
}

// FlexVolumes lists PersistentVolumes, then pods that have not ended, with a FlexVolume.
func (o *Observer) FlexVolumes() []FlexVolume {
	var list []FlexVolume
	for _, kind := range []Kind{PersistentVolumes, Pods} {
		f := o.feeds[kind]
		if f == nil {
			continue
		}
		for _, object := range f.informer.GetStore().List() {
			switch object := object.(type) {
			case *brief:
				if object.flex {
					list = append(list, FlexVolume{Name: object.GetName(), UID: object.GetUID()})
				}
			case *corev1.PersistentVolume:
				if object.Spec.FlexVolume != nil {
					list = append(list, FlexVolume{Name: object.Name, UID: object.UID})
				}
			case *keptPod:
				if object.volumes != nil { // not claims only
					list = append(list, flexVolumesOf(object.pod())...)
				}
			case *corev1.Pod:
				list = append(list, flexVolumesOf(object)...)
			}
		}
	}
	return list
}

func flexVolumesOf(pod *corev1.Pod) []FlexVolume {
	if convert.Ended(pod) || !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.FlexVolume != nil }) {
		return nil
	}
	return []FlexVolume{{Pod: &ledger.Pod{Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID)}, UID: pod.UID}}
}
