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

// nudgeInterval is the time between two nudges of a pod: a condition's times are whole seconds, and
// a write without a change is no event. It is also kube-scheduler's shortest backoff.
const nudgeInterval = time.Second

// nudgeGrace is how long a pod has to be tried without a nudge: a change that lifts a refusal often
// comes with an event that makes its scheduler try all refused pods again.
const nudgeGrace = 250 * time.Millisecond

const podTouchers = 4

const reasonLifted = "RefusalLifted"

// podToucher touches the condition Placeable of pods, which has their scheduler try them again: an
// update of an unscheduled pod is an event for that pod, and any event moves a pod that an extender
// refused (kube-scheduler's schedule_one.go and defaultEnqueueExtension). One write is enough:
// kube-scheduler remembers an event that comes during an attempt, and a pod in a queue is on its
// way anyway. Only a preempting pod may miss it (see requeuer.Keep). Safe for parallel use.
type podToucher struct {
	kube  kubernetes.Interface
	now   func() time.Time
	waits func(uid types.UID) bool // says whether a pod still waits to be tried
	queue *work.Queue[podKey]

	mu   sync.Mutex
	due  map[podKey]time.Time // requested nudges
	last map[podKey]time.Time // nudges of the last second
}

// podKey names one pod, and not its successors of the same name, as of its refusal.
type podKey struct {
	types.NamespacedName
	uid        types.UID
	generation int64
}

func newPodToucher(kube kubernetes.Interface, now func() time.Time, waits func(types.UID) bool) *podToucher {
	n := &podToucher{kube: kube, now: now, waits: waits, due: map[podKey]time.Time{}, last: map[podKey]time.Time{}}
	// A change may concern thousands of pods of a namespace: they keep no other namespace waiting.
	n.queue = work.NewInTurns("pods that may be placed", func(key podKey) string { return key.Namespace }, n.touchWhenDue)
	return n
}

// enqueue has a pod tried again soon, unless it is tried by itself.
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

// touchWhenDue nudges one pod, or says how long to wait until then.
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
		return 0, nil // it is gone, or another pod has its name
	case err != nil:
		return 0, fmt.Errorf("tell pod %s that it may be placed: %w", key, err)
	}
	n.remember(key, now)
	return 0, nil
}

// untilDue is how long to wait until the next nudge of a pod.
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

// remember remembers a nudge, and forgets nudges that no longer matter.
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

// patch writes the condition, if the pod is still the same.
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
