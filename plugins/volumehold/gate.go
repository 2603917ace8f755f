// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/plugins/internal/words"
)

// PreEnqueue keeps a pod from being tried that waits for what no new node could
// lift, and that kube-scheduler would place without Moorage: kube-scheduler would call it
// Unschedulable, and a cluster autoscaler add nodes for it. The conditionWriter says on the pod what it waits for, and the requeuer lets
// it through on the change that lifts the wait.
//
// It is called with the scheduling queue's lock held, and costs the pod's own
// volumes.
func (p *VolumeHold) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	grouped := groupOf(pod).name != ""
	if pod.Spec.NodeName != "" || len(pod.Spec.Volumes) == 0 && !grouped {
		return nil
	}
	fact, err := convert.Pod(pod)
	if err != nil || len(fact.Volumes) == 0 && !grouped {
		return nil // PreFilter says what is broken
	}
	if !p.core.requeuer.Gate(pod, fact) {
		return nil
	}
	p.core.conditions.enqueue(pod)
	if len(fact.Volumes) > 0 {
		p.core.placer.Refused(fact, nil, true)
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "the pod waits for its volumes")
}

// notWorthTrying says whether a pod is not to be tried by these facts: no node there is
// would do, nor one that is added, nor would preemption help. A pod that kube-scheduler's own
// plugins refuse is tried: it is told Unschedulable, as without Moorage.
func (c *core) notWorthTrying(pod *corev1.Pod, s ledger.Snapshot, r rules.Request) bool {
	if c.groups.incomplete(pod) != "" {
		return true
	}
	verdict, nowhere := c.arbiter.Nowhere(s, r, c.now())
	if !nowhere || verdict.RefusedByStock() {
		return false
	}
	if pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever {
		return true
	}
	for _, reason := range verdict.Reasons {
		if reason.Node != "" && c.mayEvict(pod, c.arbiter.Fit(s, r, reason.Node, c.now()), reason.Node, s) {
			return false
		}
	}
	return true
}

// mayEvict says whether preemption could lift all that speaks against a node.
// Whose slots could be freed is left to it to find out; a pod that has a ReadWriteOncePod
// volume, or one with another SELinux label, is the only one in question.
func (c *core) mayEvict(pod *corev1.Pod, v rules.Verdict, n ledger.NodeName, s ledger.Snapshot) bool {
	if _, evictable := words.Node(v, n); !evictable {
		return false
	}
	for _, reason := range v.Reasons {
		if reason.Code == rules.UsedByOtherPod || reason.Code == rules.SELinuxConflict {
			if other := s.Pod(reason.Who.UID); other == nil || other.Priority >= corev1helpers.PodPriority(pod) {
				return false
			}
		}
	}
	return true
}
