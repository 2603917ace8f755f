// SPDX-License-Identifier: Apache-2.0

package volumestatus

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/work"
	"github.com/moorage-dev/moorage/internal/write"
)

// DefaultGrace is how long a wait that usually passes may last untold.
const DefaultGrace = 30 * time.Second

const reasonSafe = "AttachedAndReported"

const reasonFinished = "PodFinished"

// Cache has the facts; package watch implements it.
type Cache interface {
	Snapshot() ledger.Snapshot
	Pod(namespace, name string) (*corev1.Pod, bool)
}

// Writer writes a pod's status; package write implements it.
type Writer interface {
	PublishPod(context.Context, *ledger.Pod, write.PodStatus) error
}

// Config configures a Controller.
type Config struct {
	Cache   Cache
	Write   Writer
	Arbiter rules.Arbiter
	Now     func() time.Time
	Grace   time.Duration
	Events  *report.Events // may be nil
}

// Validate names missing fields.
func (c Config) Validate() error {
	if c.Cache == nil || c.Write == nil || c.Now == nil || c.Grace < 0 {
		return errors.New("volumestatus: Cache, Write and Now are needed, and Grace must not be negative")
	}
	return nil
}

// Controller publishes. Add is for parallel use.
type Controller struct {
	config Config
	queue  *work.Queue[string]

	mu      sync.Mutex
	waiting map[string]time.Time // since when this process sees pods wait, by UID
	next    map[string]time.Time // when pods without a node may be told next, by UID
	stuck   map[string]stuck     // waiting pods with a node, by UID
	ended   releases             // ended pods with volumes at their kubelet
	gone    work.Sweep           // of all four
}

// New returns a Controller.
func New(config Config) (*Controller, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	c := &Controller{config: config, waiting: map[string]time.Time{}, next: map[string]time.Time{}, stuck: map[string]stuck{}, ended: newReleases()}
	c.queue = work.NewFair("pods", c.turn, c.process)
	return c, nil
}

func (c *Controller) turn(uid string) (namespace string, as work.Rank) {
	if pod := c.config.Cache.Snapshot().Pod(uid); pod != nil {
		return pod.Namespace, work.Touched
	}
	return "", work.Touched
}

// Add has a pod looked at.
func (c *Controller) Add(uid string) { c.queue.Add(uid) }

// Later has a pod looked at after the touched pods.
func (c *Controller) Later(uid string) { c.queue.Later(uid) }

// Depth counts the due pods. Safe for parallel use.
func (c *Controller) Depth() int { return c.queue.Len() }

// Run works until ctx is done and the last write is answered or cancelled.
func (c *Controller) Run(ctx context.Context, workers int) { c.queue.Run(ctx, workers) }

func (c *Controller) process(ctx context.Context, uid string) (time.Duration, error) {
	now := c.config.Now()
	s := c.config.Cache.Snapshot()
	pod := s.Pod(uid)
	if pod == nil || len(pod.Volumes) == 0 {
		c.podLeft(uid)
		return 0, nil
	}
	object, ok := c.config.Cache.Pod(pod.Namespace, pod.Name)
	if !ok || string(object.UID) != uid || object.DeletionTimestamp != nil && pod.Node == "" {
		c.podLeft(uid)
		return 0, nil
	}
	if pod.Node == "" {
		return c.reportUnscheduled(ctx, s, pod, object)
	}
	c.podBound(uid)
	said, _ := v1alpha1.VolumeStatusOf(object)
	st := stateOf(c.config.Arbiter, s, pod, said, now)
	c.note(object, pod, st, now)
	worth, later := c.worth(object, pod, st, now)
	if !worth {
		return later, nil
	}
	return later, c.publish(ctx, object, pod, st, now)
}

// worth says whether a state is worth a write, or after how long.
func (c *Controller) worth(object *corev1.Pod, pod *ledger.Pod, st state, now time.Time) (bool, time.Duration) {
	_, stamped := object.Annotations[v1alpha1.AnnotationVolumeStatus]
	switch {
	case pod.OptedOut && c.config.Arbiter.Cooperative:
		return false, 0
	case pod.Phase == ledger.PodFinished:
		return c.worthAtEnd(object, pod, st, stamped)
	case object.DeletionTimestamp != nil:
		return st.broken, 0 // it mounts nothing any more: only an outdated promise is taken back
	case st.safe:
		c.podLeft(pod.UID)
		return stamped, 0
	case st.broken, st.lasts():
		return true, 0
	}
	if left := c.config.Grace - now.Sub(c.since(pod.UID, now)); left > 0 {
		return false, left
	}
	return true, c.config.Grace // it may change without an event for the pod
}

// worthAtEnd is worth for a pod with ended containers. It is told at once that its volumes are no longer
// safe to mount, before its kubelet unmounts them; and of each volume that the kubelet has let go of,
// before the detach. While its kubelet has the volumes, a terminating pod without finalizers costs no
// write: the kubelet then deletes the pod.
func (c *Controller) worthAtEnd(object *corev1.Pod, pod *ledger.Pod, st state, stamped bool) (bool, time.Duration) {
	stays := object.DeletionTimestamp == nil || len(object.Finalizers) > 0
	switch {
	case !stamped:
		c.podLeft(pod.UID)
		return false, 0
	case st.released():
		c.podLeft(pod.UID)
		return stays || st.letGo || st.broken, 0
	}
	c.awaitRelease(pod.UID, st.held)
	return stays || st.letGo, c.config.Grace
}

func (c *Controller) publish(ctx context.Context, object *corev1.Pod, pod *ledger.Pod, st state, now time.Time) error {
	annotation, err := st.status.Annotation()
	if err != nil {
		return err
	}
	status := write.PodStatus{Annotation: annotation, Condition: condition(object, st, c.began(pod.UID, now))}
	if object.Annotations[v1alpha1.AnnotationVolumeStatus] == annotation && !saysOtherwise(object, status.Condition) {
		return nil
	}
	if err := c.config.Write.PublishPod(ctx, pod, status); err != nil {
		return err
	}
	c.tell(object, pod, st)
	return nil
}

// condition keeps the earlier time of an unchanged condition.
func condition(object *corev1.Pod, st state, since time.Time) corev1.PodCondition {
	c := corev1.PodCondition{
		Type: v1alpha1.PodSafeToMount, Status: corev1.ConditionTrue, Reason: reasonSafe,
		LastTransitionTime: metav1.NewTime(since), ObservedGeneration: object.Generation,
	}
	switch {
	case st.safe:
	case st.finished:
		c.Status, c.Reason = corev1.ConditionFalse, reasonFinished
	default:
		first := st.first()
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, string(first.Code), strings.ToValidUTF8(first.Message(), "")
	}
	for _, old := range object.Status.Conditions {
		if old.Type == c.Type && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
	}
	return c
}

// saysOtherwise compares: the condition names the lasting reason, the annotation each volume's first
// reason.
func saysOtherwise(object *corev1.Pod, is corev1.PodCondition) bool {
	return slices.ContainsFunc(object.Status.Conditions, func(was corev1.PodCondition) bool {
		return was.Type == is.Type && (was.Status != is.Status || was.Reason != is.Reason || was.Message != is.Message)
	})
}

func (c *Controller) since(uid string, now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.waiting[uid]; !ok {
		c.sweep()
		c.waiting[uid] = now
	}
	return c.waiting[uid]
}

// sweep forgets gone pods: deleted waiting pods are not looked at again. mu is held.
func (c *Controller) sweep() {
	known := func() int { return len(c.waiting) + len(c.next) + len(c.stuck) + len(c.ended.volumes) }
	if !c.gone.Due(known()) {
		return
	}
	s := c.config.Cache.Snapshot()
	gone := func(uid string, _ time.Time) bool { return s.Pod(uid) == nil }
	maps.DeleteFunc(c.waiting, gone)
	maps.DeleteFunc(c.next, gone)
	maps.DeleteFunc(c.stuck, func(uid string, _ stuck) bool { return s.Pod(uid) == nil })
	c.ended.keep(func(uid string) bool { return s.Pod(uid) != nil })
	c.gone.Left(known())
}

func (c *Controller) podLeft(uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, uid)
	delete(c.next, uid)
	delete(c.stuck, uid)
	c.ended.drop(uid)
}

func (c *Controller) podBound(uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.next, uid)
}
