// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/work"
	"github.com/moorage-dev/moorage/plugins/internal/binding"
	"github.com/moorage-dev/moorage/plugins/internal/condition"
)

// nudgeInterval is the time between two nudges of a pod: a condition has whole seconds, and a write without
// a change is no event. It is also kube-scheduler's shortest backoff.
const nudgeInterval = time.Second

// nudgeGrace is the time without a nudge: a lifting change often comes with an event that retries all
// refused pods.
const nudgeGrace = 250 * time.Millisecond

const podTouchers = 4

const reasonLifted = "RefusalLifted"

// podToucher touches the condition Placeable, so that the scheduler retries the pod: an update of an
// unscheduled pod is an event, and any event moves a pod that an extender refused (kube-scheduler's
// schedule_one.go and defaultEnqueueExtension). A single write is enough, except for a preempting pod (see
// requeuer.Keep). Safe for parallel use.
type podToucher struct {
	kube  kubernetes.Interface
	now   func() time.Time
	waits func(uid types.UID) bool // says whether a pod still waits to be tried
	queue *work.Queue[podKey]

	mu   sync.Mutex
	due  map[podKey]time.Time // requested nudges
	last map[podKey]time.Time // nudges of the last second
}

// podKey names one pod, without its successors, as of its refusal.
type podKey struct {
	types.NamespacedName
	uid        types.UID
	generation int64
}

func newPodToucher(kube kubernetes.Interface, now func() time.Time, waits func(types.UID) bool) *podToucher {
	n := &podToucher{kube: kube, now: now, waits: waits, due: map[podKey]time.Time{}, last: map[podKey]time.Time{}}
	// Thousands of pods of a namespace must not keep another namespace waiting.
	n.queue = work.NewInTurns("pods that may be placed", func(key podKey) string { return key.Namespace }, n.touchWhenDue)
	return n
}

func (n *podToucher) enqueue(_ context.Context, pod *corev1.Pod) {
	key := podKey{types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, pod.UID, pod.Generation}
	n.mu.Lock()
	if _, asked := n.due[key]; !asked {
		n.due[key] = n.now().Add(nudgeGrace)
	}
	n.mu.Unlock()
	n.queue.Add(key)
}

func (n *podToucher) run(ctx context.Context) { n.queue.Run(ctx, podTouchers) }

func (n *podToucher) touchWhenDue(ctx context.Context, key podKey) (time.Duration, error) {
	now := n.now()
	if early := n.untilDue(key, now); early > 0 {
		return early, nil
	}
	if !n.waits(key.uid) {
		n.forget(key)
		return 0, nil
	}
	err := n.patch(ctx, key, now)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		n.forget(key)
		return 0, nil // gone or replaced
	case err != nil:
		return 0, fmt.Errorf("tell pod %s that it may be placed: %w", key, err)
	}
	n.remember(key, now)
	return 0, nil
}

func (n *podToucher) untilDue(key podKey, now time.Time) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	early := n.due[key].Sub(now)
	if last, ok := n.last[key]; ok {
		early = max(early, last.Add(nudgeInterval).Sub(now))
	}
	return early
}

func (n *podToucher) forget(key podKey) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.due, key)
}

func (n *podToucher) remember(key podKey, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for k, last := range n.last {
		if now.Sub(last) >= nudgeInterval {
			delete(n.last, k)
		}
	}
	n.last[key] = now
	delete(n.due, key)
}

func (n *podToucher) patch(ctx context.Context, key podKey, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, binding.RequestTimeout)
	defer cancel()
	at := metav1.NewTime(now)
	return condition.Patch(ctx, n.kube, key.NamespacedName, metav1.Preconditions{UID: &key.uid}, corev1.PodCondition{
		Type: v1alpha1.PodPlaceable, Status: corev1.ConditionTrue, Reason: reasonLifted,
		Message:       "what kept the pod's volumes from a node has changed; the scheduler may try it again",
		LastProbeTime: at, LastTransitionTime: at, ObservedGeneration: key.generation,
	})
}
