// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"encoding/json"
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
)

// nudgeInterval is how far apart the nudges of one pod are: times in a condition
// are in whole seconds, and a write that changes nothing is no event. It is also
// kube-scheduler's shortest backoff.
const nudgeInterval = time.Second

// nudgers write in parallel.
const nudgers = 4

// reasonLifted is the reason of condition Placeable.
const reasonLifted = "RefusalLifted"

// nudger touches the condition Placeable of pods, which has their scheduler try
// them again: an update of an unscheduled pod is an event for that pod, and one
// that an extender refused is moved by any event. Safe for parallel use.
type nudger struct {
	kube    kubernetes.Interface
	now     func() time.Time
	timeout time.Duration // of each write
	queue   *work.Queue[podKey]

	mu   sync.Mutex
	last map[podKey]time.Time // nudges of the last second
}

// podKey names one pod, and not its successors of the same name.
type podKey struct {
	types.NamespacedName
	uid types.UID
}

func newNudger(kube kubernetes.Interface, now func() time.Time, timeout time.Duration) *nudger {
	n := &nudger{kube: kube, now: now, timeout: timeout, last: map[podKey]time.Time{}}
	n.queue = work.New("pods that may be placed", n.touch)
	return n
}

// nudge has a pod tried again soon.
func (n *nudger) nudge(_ context.Context, pod *corev1.Pod) {
	n.queue.Add(podKey{types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, pod.UID})
}

// run nudges until ctx is done.
func (n *nudger) run(ctx context.Context) { n.queue.Run(ctx, nudgers) }

// touch nudges one pod, or says how long to wait until then.
func (n *nudger) touch(ctx context.Context, key podKey) (time.Duration, error) {
	now := n.now()
	if early := n.early(key, now); early > 0 {
		return early, nil
	}
	err := n.patch(ctx, key, now)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return 0, nil // it is gone, or another pod has its name
	case err != nil:
		return 0, fmt.Errorf("tell pod %s that it may be placed: %w", key, err)
	}
	n.nudged(key, now)
	return 0, nil
}

// early is how long to wait until the next nudge of a pod.
func (n *nudger) early(key podKey, now time.Time) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	last, ok := n.last[key]
	if !ok {
		return 0
	}
	return last.Add(nudgeInterval).Sub(now)
}

// nudged remembers a nudge, and forgets those that matter no more.
func (n *nudger) nudged(key podKey, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for k, last := range n.last {
		if now.Sub(last) >= nudgeInterval {
			delete(n.last, k)
		}
	}
	n.last[key] = now
}

// patch writes the condition, if the pod is still the one that is meant.
func (n *nudger) patch(ctx context.Context, key podKey, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, n.timeout)
	defer cancel()
	at := metav1.NewTime(now)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": key.uid},
		"status": map[string]any{"conditions": []corev1.PodCondition{{
			Type: v1alpha1.PodPlaceable, Status: corev1.ConditionTrue, Reason: reasonLifted,
			Message:       "what kept the pod's volumes from a node has changed; the scheduler may try it again",
			LastProbeTime: at, LastTransitionTime: at,
		}}},
	})
	if err != nil {
		return fmt.Errorf("encode the condition: %w", err)
	}
	_, err = n.kube.CoreV1().Pods(key.Namespace).Patch(ctx, key.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
