// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Object makes the VolumeTicket of a reservation: named by the pod's UID and
// owned by the pod, so that Kubernetes collects it with its pod.
func Object(t ledger.Ticket) *v1alpha1.VolumeTicket {
	object := &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: t.ID.Namespace,
			Name:      t.ID.Name,
			Labels:    map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Pod",
				Name: t.PodName, UID: types.UID(t.Pod),
				Controller: new(bool), BlockOwnerDeletion: new(bool),
			}},
		},
		Spec: v1alpha1.VolumeTicketSpec{
			Type: v1alpha1.TicketPod, NodeName: string(t.Node), Scheduler: t.Scheduler,
		},
	}
	for _, v := range t.Volumes {
		volume := v1alpha1.TicketVolume{PodVolume: v.PodVolume}
		if v.Claim != "" {
			volume.Claim = &v1alpha1.ClaimReference{Name: v.Claim, UID: types.UID(v.ClaimUID)}
		}
		// Two volumes of a pod may name one claim; the ticket names it once.
		if !slices.ContainsFunc(object.Spec.Volumes, func(w v1alpha1.TicketVolume) bool { return equality.Semantic.DeepEqual(volume, w) }) {
			object.Spec.Volumes = append(object.Spec.Volumes, volume)
		}
	}
	return object
}

// sameReservation says whether an existing ticket asks for just what wanted
// does, and will stay.
func sameReservation(existing, wanted *v1alpha1.VolumeTicket) bool {
	return existing.DeletionTimestamp == nil &&
		equality.Semantic.DeepEqual(existing.Spec, wanted.Spec) &&
		slices.ContainsFunc(existing.OwnerReferences, func(o metav1.OwnerReference) bool {
			return o.UID == wanted.OwnerReferences[0].UID
		})
}
