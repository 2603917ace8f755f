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

// PreEnqueue gates a pod that no new node would help and that kube-scheduler would place without Moorage:
// otherwise a cluster autoscaler would add nodes for an Unschedulable pod. The conditionWriter writes its
// reason, and the requeuer opens the gate.
//
// It runs under the scheduling queue's lock, and costs the pod's own volumes.
func (p *VolumeHold) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	grouped := groupOf(pod).name != ""
	if pod.Spec.NodeName != "" || len(pod.Spec.Volumes) == 0 && !grouped {
		return nil
	}
	fact, err := convert.Pod(pod)
	if err != nil || len(fact.Volumes) == 0 && !grouped {
		return nil // PreFilter reports broken volumes
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

// notWorthTrying says whether no existing or new node fits, and preemption would not help. A pod that
// kube-scheduler's own plugins refuse is tried: it is told Unschedulable, as without Moorage.
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

// mayEvict says whether preemption could lift all reasons against a node. For a ReadWriteOncePod volume, or
// another SELinux label, only the pod with the volume can be the victim.
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
