// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// EventsToRegister lists helpful events that the ledger can't see: a nominated pod is gone; the scheduler
// has learned of a node that the ledger may already know. The requeuer handles all else.
func (p *VolumeHold) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}, QueueingHintFn: nominatedPodGone},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}, QueueingHintFn: p.nodeKnown},
	}, nil
}

// If the ledger does not know the node yet, the requeuer will wake the pod.
func (p *VolumeHold) nodeKnown(_ klog.Logger, refused *corev1.Pod, _, added any) (fwk.QueueingHint, error) {
	node, ok := added.(*corev1.Node)
	if !ok {
		return fwk.Queue, fmt.Errorf("the event is about a %T, not a node", added)
	}
	fact, s := factOf(refused), p.core.facts.Snapshot()
	if p.core.arbiter.Fit(s, rules.PodRequest(s, &fact), ledger.NodeName(node.Name), p.core.now()).Allowed() {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}

// nominatedPodGone says whether a nominated pod, which counts at its node before its bind, may have caused
// the refusal. The framework reports its end as an assigned pod's.
func nominatedPodGone(_ klog.Logger, refused *corev1.Pod, old, _ any) (fwk.QueueingHint, error) {
	gone, ok := old.(*corev1.Pod)
	if !ok {
		return fwk.Queue, fmt.Errorf("the event is about a %T, not a pod", old)
	}
	if gone.Status.NominatedNodeName == "" || gone.UID == refused.UID {
		return fwk.QueueSkip, nil
	}
	if len(factOf(gone).Volumes) == 0 {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}
