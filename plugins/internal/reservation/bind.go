// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrFenced says that another process has taken over, and takes the reservation away.
var ErrFenced = errors.New("another scheduler has taken over, and withdraws the reservation")

// bindTries is how often a bind is sent whose pod changes meanwhile.
const bindTries = 5

// Bind binds a reservation's pod to its node. The request carries the pod's UID and
// the resource version that it was reserved by: once a leader that follows has written
// its fence into the pod, it fails, whenever it arrives. Where the pod has merely
// changed, it is sent again with the new version. send makes the request.
func (b *Book) Bind(ctx context.Context, r *Reservation, send func(context.Context, *corev1.Binding) error) error {
	version := r.Pod.ResourceVersion
	for tries := 1; ; tries++ {
		b.While(r, func() { r.binding = true })
		failed := send(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.Pod.Namespace, Name: r.Pod.Name, UID: r.Pod.UID, ResourceVersion: version},
			Target:     corev1.ObjectReference{Kind: "Node", Name: string(r.Ticket.Node)},
		})
		if failed == nil {
			return nil
		}
		if refused(failed) {
			b.While(r, func() { r.binding = false })
		}
		pod, err := b.facts.ConfirmPod(ctx, r.Pod.Namespace, r.Pod.Name, string(r.Pod.UID))
		switch {
		case err != nil:
			return fmt.Errorf("bind the pod: %w", errors.Join(failed, err))
		case pod == nil:
			return ErrPodGone
		case pod.Spec.NodeName == string(r.Ticket.Node):
			return nil // whoever did it, and whatever the answer was
		case !apierrors.IsConflict(failed), pod.Spec.NodeName != "", pod.DeletionTimestamp != nil, pod.ResourceVersion == version, tries == bindTries:
			return fmt.Errorf("bind the pod: %w", failed)
		case b.fencer.stops(r.Pod, pod):
			return ErrFenced
		}
		version = pod.ResourceVersion
	}
}

// refused says whether the API server has certainly not done what it was asked for.
func refused(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest && status.Status().Code < http.StatusInternalServerError
}
