// SPDX-License-Identifier: Apache-2.0

package report

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Object is the object of an event. kubectl describe finds events by the UID.
type Object struct{ APIVersion, Kind, Namespace, Name, UID string }

// OfVolume is a volume's VolumeHold, without its UID: see WithUID.
func OfVolume(v ledger.VolumeID) Object {
	return Object{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindVolumeHold, Name: v1alpha1.VolumeHoldName(v.Driver, v.Handle)}
}

// OfTicket is a VolumeTicket.
func OfTicket(t *ledger.Ticket) Object {
	return Object{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindVolumeTicket, Namespace: t.ID.Namespace, Name: t.ID.Name, UID: t.UID}
}

// OfNode is a Node; like kubelets' events, its events have its name for a UID.
func OfNode(n ledger.NodeName) Object {
	return Object{Kind: "Node", Name: string(n), UID: string(n)}
}

func OfPod(p *ledger.Pod) Object {
	return Object{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID}
}

// OfClaim is a PersistentVolumeClaim.
func OfClaim(c *ledger.Claim) Object {
	return Object{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: c.Key.Namespace, Name: c.Key.Name, UID: c.UID}
}

// WithUID is the object with a UID that was read.
func (o Object) WithUID(uid types.UID) Object {
	o.UID = string(uid)
	return o
}

func ofHold(h *v1alpha1.VolumeHold) Object {
	return Object{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindVolumeHold, Name: h.Name, UID: string(h.UID)}
}

func ofTicket(t *v1alpha1.VolumeTicket) Object {
	return Object{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindVolumeTicket, Namespace: t.Namespace, Name: t.Name, UID: string(t.UID)}
}

// OfAttachment is a VolumeAttachment.
func OfAttachment(a *ledger.Attachment) Object {
	return Object{APIVersion: "storage.k8s.io/v1", Kind: "VolumeAttachment", Name: a.Name, UID: a.UID}
}

func (o Object) reference() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: types.UID(o.UID)}
}

// Difference reports on an object a difference from the truth check's expectation.
func (e *Events) Difference(at Object, code, message string) {
	if e == nil {
		return
	}
	e.log.Error(nil, "The truth check found a difference", "reason", code, "kind", at.Kind, "object", klog.KRef(at.Namespace, at.Name))
	e.warn(at, code, message)
}
