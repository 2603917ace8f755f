// SPDX-License-Identifier: Apache-2.0

// Package binding counts a pod at a node, sends the request that binds it, and finds out whether it was
// bound. Plugin and extender share one Placer.
//
// The request carries the pod's UID and resource version, and its reservation as the annotation
// moorage.dev/volume-status: the API server writes node and reservation together.
package binding

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// ErrPodGone says that the pod is gone or being deleted.
var ErrPodGone = errors.New("the pod is being deleted")

// ErrStopped says that no request was sent: the scheduler stops, or its lease is over.
var ErrStopped = errors.New("this scheduler binds no pod any more")

// ErrUnsettled says that a request may still be under way.
var ErrUnsettled = errors.New("it is not known yet whether a pod was bound")

// RequestTimeout limits one request.
const RequestTimeout = 10 * time.Second

// maxUnanswered is how often a request is sent without an answer before the pod is changed: a failing
// webhook of pods/binding looks like a broken API server.
const maxUnanswered = 3

const maxConflicts = 5

// Binder binds pods. Send and Confirm must be set. Safe for parallel use.
type Binder struct {
	Send func(context.Context, *corev1.Binding) error
	// Confirm reads the present pod; nil: no pod has this name and UID.
	Confirm func(ctx context.Context, namespace, name, uid string) (*corev1.Pod, error)
	// Change writes to a pod at a resource version, so that a request with the old version can't bind it
	// any more. why says why it is not bound yet. Without Change a request is sent until it is answered.
	Change func(ctx context.Context, namespace, name, uid, version, why string) error
	// Until returns the present end of the lease, a limit of requests. nil or the zero time: no lease.
	Until func() time.Time

	mu       sync.Mutex
	stopped  bool
	underWay sync.WaitGroup // counts calls of Bind
}

// Bind binds a pod to a node. nil: it is bound there, by any request. After any error it is not bound
// there, and no request of this call can bind it any more.
//
// A request without an answer is sent again to the same node. After maxUnanswered requests Bind changes the
// pod: requests with the old version then fail for certain.
//
// The end of ctx keeps Bind from beginning, but does not end a running request: it may still bind the pod.
func (b *Binder) Bind(ctx context.Context, pod *corev1.Pod, node string, annotations map[string]string) error {
	if !b.begin(ctx) {
		return fmt.Errorf("bind the pod: %w", ErrStopped)
	}
	defer b.underWay.Done()
	ctx = context.WithoutCancel(ctx)
	version, conflicts := pod.ResourceVersion, 0
	unanswered := 0 // requests with this version
	delay := wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 20, Cap: 5 * time.Second}.DelayFunc()
	for {
		failed := b.send(ctx, pod, version, node, annotations)
		switch {
		case failed == nil:
			return nil
		case apierrors.IsNotFound(failed) && unanswered == 0:
			return ErrPodGone
		case errors.Is(failed, ErrStopped) && unanswered == 0:
			return fmt.Errorf("bind the pod: %w", failed)
		case !errors.Is(failed, ErrStopped) && (unanswered > 0 || !answered(failed)):
			unanswered++
		}
		if unanswered >= maxUnanswered {
			b.change(ctx, pod, version, node, failed)
		}
		now, err := b.confirm(ctx, pod)
		switch {
		case err != nil:
			failed = errors.Join(failed, err)
			if unanswered == 0 {
				return fmt.Errorf("bind the pod: %w", failed)
			}
		case now == nil || now.Spec.NodeName == "" && now.DeletionTimestamp != nil:
			return ErrPodGone
		case now.Spec.NodeName == node:
			return nil
		case now.Spec.NodeName != "":
			return fmt.Errorf("the pod is bound to %s already", now.Spec.NodeName)
		case now.ResourceVersion != version:
			if conflicts++; conflicts == maxConflicts || answered(failed) || unanswered >= maxUnanswered {
				return fmt.Errorf("bind the pod: %w", failed)
			}
			version, unanswered = now.ResourceVersion, 0
			continue
		case unanswered == 0:
			return fmt.Errorf("bind the pod: %w", failed)
		}
		time.Sleep(delay())
	}
}

// Settle stops new Binds, and waits for each request's outcome. It returns ErrUnsettled if ctx is done
// before.
func (b *Binder) Settle(ctx context.Context) error {
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		b.underWay.Wait()
	}()
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		return ErrUnsettled
	}
}

func (b *Binder) begin(ctx context.Context) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped || ctx.Err() != nil {
		return false
	}
	b.underWay.Add(1)
	return true
}

// The request ends inside the lease.
func (b *Binder) send(ctx context.Context, pod *corev1.Pod, version, node string, annotations map[string]string) error {
	limit := RequestTimeout
	if b.Until != nil {
		if until := b.Until(); !until.IsZero() {
			limit = min(limit, time.Until(until))
		}
	}
	if limit <= 0 {
		return ErrStopped
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return b.Send(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: version, Annotations: annotations},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	})
}

func (b *Binder) change(ctx context.Context, pod *corev1.Pod, version, node string, failed error) {
	why := fmt.Sprintf("The API server has not said whether the pod was bound to node %s: %s", node, failed)
	klog.FromContext(ctx).Error(failed, "A request that binds a pod is not answered", "pod", klog.KObj(pod), "node", node)
	if b.Change == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	if err := b.Change(ctx, pod.Namespace, pod.Name, string(pod.UID), version, why); err != nil {
		klog.FromContext(ctx).Error(err, "Can't change a pod, so that the request that binds it fails", "pod", klog.KObj(pod))
	}
}

func (b *Binder) confirm(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(ctx, RequestTimeout)
	defer cancel()
	return b.Confirm(ctx, pod.Namespace, pod.Name, string(pod.UID))
}

// answered says whether the API server has certainly not done the request. A conflict proves nothing: the
// API server also gives it when its storage failed.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest && status.Status().Code < http.StatusInternalServerError && !apierrors.IsConflict(err)
}
