// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/work"
	"github.com/moorage-dev/moorage/plugins/internal/condition"
	"github.com/moorage-dev/moorage/plugins/internal/words"
)

// VolumeWait is the reason of PodScheduled=False if no new node would help, and kube-scheduler would place
// the pod without Moorage. cluster-autoscaler and Karpenter look for Unschedulable.
const VolumeWait = "VolumeWait"

const (
	conditionWriters = 2
	tellTimeout      = 10 * time.Second
)

// conditionWriter writes PodScheduled=False with VolumeWait: on gated pods, about which kube-scheduler
// writes nothing; on pods that it tried at the one node of their volumes and called Unschedulable; and on
// pods of an incomplete PodGroup.
//
// A write's precondition is the lister's version of the pod: a pod bound meanwhile is left alone. Safe for
// parallel use.
type conditionWriter struct {
	core   *core
	client kubernetes.Interface // own rate limit: binds never wait for conditions
	queue  *work.Queue[cache.ObjectName]
}

func newConditionWriter(c *core, client kubernetes.Interface) *conditionWriter {
	t := &conditionWriter{core: c, client: client}
	// Many waiting pods of a namespace don't delay another namespace.
	of := func(key cache.ObjectName) string { return key.Namespace }
	t.queue = work.NewInTurns("waiting pods", of, func(ctx context.Context, key cache.ObjectName) (time.Duration, error) {
		return 0, t.writeCondition(ctx, key)
	})
	return t
}

func (t *conditionWriter) enqueue(pod *corev1.Pod) {
	t.queue.Add(cache.ObjectName{Namespace: pod.Namespace, Name: pod.Name})
}

func (t *conditionWriter) observe(pod *corev1.Pod) {
	if len(pod.Spec.Volumes) == 0 && groupOf(pod).name == "" {
		return
	}
	if idle, _ := t.core.requeuer.Idle(pod.UID); idle {
		t.enqueue(pod)
	}
}

func (t *conditionWriter) run(ctx context.Context) { t.queue.Run(ctx, conditionWriters) }

func (t *conditionWriter) writeCondition(ctx context.Context, key cache.ObjectName) error {
	pod, err := t.core.pods.Pods(key.Namespace).Get(key.Name)
	if err != nil || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || !t.core.facts.HasSynced() {
		return nil // the only error is a missing object
	}
	idle, gated := t.core.requeuer.Idle(pod.UID)
	if !idle {
		return nil
	}
	fact := factOf(pod)
	s := t.core.facts.Snapshot()
	wanted := t.core.wait(pod, s, rules.PodRequest(s, &fact), gated)
	if wanted == nil || equality.Semantic.DeepEqual(wanted, scheduled(pod)) {
		return nil
	}
	err = t.write(ctx, pod, wanted)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", protocol.ErrStale, err)
	case err != nil:
		return fmt.Errorf("writing the condition %s of pod %s: %w", wanted.Type, key, err)
	}
	if gated {
		t.core.handle.EventRecorder().Eventf(pod, nil, corev1.EventTypeWarning, VolumeWait, "Scheduling", "%s", wanted.Message)
	}
	return nil
}

// wait is nil if kube-scheduler writes the condition.
func (c *core) wait(pod *corev1.Pod, s ledger.Snapshot, r rules.Request, gated bool) *corev1.PodCondition {
	incomplete := c.groups.incomplete(pod)
	if v := c.arbiter.NewNode(s, r, c.now()); incomplete == "" && (v.Allowed() || v.RefusedByStock()) {
		return nil
	}
	current := scheduled(pod)
	wanted := &corev1.PodCondition{Type: corev1.PodScheduled, LastTransitionTime: metav1.NewTime(c.now().Truncate(time.Second))}
	switch {
	case incomplete != "":
		wanted.Message = incomplete + ". No new node would help."
	case gated:
		wanted.Message = words.Waiting(c.arbiter, s, r, c.now())
	case current != nil && current.Reason == corev1.PodReasonUnschedulable:
		wanted.Message = current.Message
	default:
		return nil
	}
	if current != nil && current.Status == corev1.ConditionFalse {
		*wanted = corev1.PodCondition{Type: wanted.Type, Message: wanted.Message, LastTransitionTime: current.LastTransitionTime}
	}
	wanted.Status, wanted.Reason, wanted.ObservedGeneration = corev1.ConditionFalse, VolumeWait, pod.Generation
	return wanted
}

func scheduled(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodScheduled {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func (t *conditionWriter) write(ctx context.Context, pod *corev1.Pod, wanted *corev1.PodCondition) error {
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	return condition.Patch(ctx, t.client, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name},
		metav1.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}, *wanted)
}
