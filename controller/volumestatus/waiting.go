// SPDX-License-Identifier: Apache-2.0

package volumestatus

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
)

type stuck struct {
	code  ledger.Code
	since time.Time
}

func (c *Controller) note(object *corev1.Pod, pod *ledger.Pod, st state, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	code := st.first().Code
	if pod.Node == "" || pod.Phase == ledger.PodFinished || code == "" || pod.OptedOut && c.config.Arbiter.Cooperative {
		delete(c.stuck, pod.UID)
		return
	}
	before, known := c.stuck[pod.UID]
	if !known {
		c.sweep()
		before.since = waitsSince(object, now)
	} else if at := wasSafe(object); at.After(before.since) && at.Before(now) {
		before.since = at // it waits only since then: that write's answer came late
	}
	c.stuck[pod.UID] = stuck{code, before.since}
}

// waitsSince reads the condition: an earlier leader may have written it.
func waitsSince(object *corev1.Pod, now time.Time) time.Time {
	for _, condition := range object.Status.Conditions {
		if at := condition.LastTransitionTime.Time; condition.Type == v1alpha1.PodSafeToMount && condition.Status == corev1.ConditionFalse && at.Before(now) {
			return at
		}
	}
	return now
}

// wasSafe is when a pod was told that its volumes are safe; or zero.
func wasSafe(object *corev1.Pod) time.Time {
	for _, condition := range object.Status.Conditions {
		if condition.Type == v1alpha1.PodSafeToMount && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// began is the begin of a wait, which is written later; now without a wait.
func (c *Controller) began(uid string, now time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if pod, waits := c.stuck[uid]; waits {
		return pod.since
	}
	return now
}

// Waiting counts waiting pods with a node by the longest-lasting reason. Safe for parallel use.
func (c *Controller) Waiting() map[ledger.Code]report.PodWait {
	s, now := c.config.Cache.Snapshot(), c.config.Now()
	c.mu.Lock()
	all := maps.Clone(c.stuck)
	c.mu.Unlock()
	waits := map[ledger.Code]report.PodWait{}
	for uid, pod := range all {
		is := s.Pod(uid)
		if is == nil {
			continue // deleted during the wait
		}
		if rules.Transient(pod.code) {
			// Other objects change it, without an event for the pod.
			if pod.code = stateOf(c.config.Arbiter, s, is, v1alpha1.VolumeStatus{}, now).first().Code; pod.code == "" {
				continue
			}
		}
		w := waits[pod.code]
		if w.Pods++; w.Oldest.IsZero() || pod.since.Before(w.Oldest) {
			w.Oldest = pod.since
		}
		waits[pod.code] = w
	}
	return waits
}
