// SPDX-License-Identifier: Apache-2.0

// Package binding sends the request that binds a pod, and finds out whether the pod was bound. The
// plugin and the extender use it.
//
// Reads: the pod, if a request failed. Writes: one pods/binding. The request carries the pod's UID
// and resource version, and the pod's reservation as the annotation moorage.dev/volume-status: the
// API server writes node and reservation together.
package binding

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// ErrPodGone says that there is nothing to bind: the pod is gone, or is being deleted.
var ErrPodGone = errors.New("the pod is being deleted")

// RequestTimeout is how long one request may take.
const RequestTimeout = 10 * time.Second

// maxConflicts is how often a request is sent again because the pod has changed meanwhile.
const maxConflicts = 5

// Binder binds pods. Both fields must be set. Safe for parallel use.
type Binder struct {
	// Send makes the request.
	Send func(context.Context, *corev1.Binding) error
	// Confirm reads a pod as it is now; nil: there is no pod with this name and UID.
	Confirm func(ctx context.Context, namespace, name, uid string) (*corev1.Pod, error)
}

// Bind binds a pod to a node. It returns nil if the pod is bound there, by any request. After any
// other answer the pod is not bound there and no request of this call can bind it any more, unless
// ctx is done: then the outcome may be unknown.
//
// A request without an answer is sent again to the same node, until its outcome is known. The
// request names the pod's resource version, so that it fails for certain once the pod has another.
func (b Binder) Bind(ctx context.Context, pod *corev1.Pod, node string, annotations map[string]string) error {
	version, conflicts := pod.ResourceVersion, 0
	unanswered := false // a request with this version
	delay := wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 20, Cap: 5 * time.Second}.DelayFunc()
	for {
		failed := b.send(ctx, pod, version, node, annotations)
		switch {
		case failed == nil:
			return nil
		case apierrors.IsNotFound(failed):
			return ErrPodGone
		}
		unanswered = unanswered || !answered(failed)
		now, err := b.Confirm(ctx, pod.Namespace, pod.Name, string(pod.UID))
		switch {
		case err != nil:
			failed = errors.Join(failed, err)
			if !unanswered {
				return fmt.Errorf("bind the pod: %w", failed)
			}
		case now == nil || now.Spec.NodeName == "" && now.DeletionTimestamp != nil:
			return ErrPodGone
		case now.Spec.NodeName == node:
			return nil
		case now.Spec.NodeName != "":
			return fmt.Errorf("the pod is bound to %s already", now.Spec.NodeName)
		case now.ResourceVersion != version:
			if conflicts++; conflicts == maxConflicts || answered(failed) {
				return fmt.Errorf("bind the pod: %w", failed)
			}
			version, unanswered = now.ResourceVersion, false
			continue
		case !unanswered:
			return fmt.Errorf("bind the pod: %w", failed)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("bind the pod: %w", errors.Join(failed, context.Cause(ctx)))
		case <-time.After(delay()):
		}
	}
}

func (b Binder) send(ctx context.Context, pod *corev1.Pod, version, node string, annotations map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	return b.Send(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: version, Annotations: annotations},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	})
}

// answered says whether the API server has certainly not done what it was asked for. A conflict is no
// such answer: the API server gives it also when its storage failed. A read tells.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest && status.Status().Code < http.StatusInternalServerError && !apierrors.IsConflict(err)
}
