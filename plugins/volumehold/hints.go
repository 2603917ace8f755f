// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// EventsToRegister lists what may let a refused pod in that the ledger can't
// see, and only that: a pod that was nominated to a node is gone. All else is
// the waker's, which hears of a change after the ledger and not before; see
// there.
func (p *VolumeHold) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{
		Event:          fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete},
		QueueingHintFn: nominatedPodGone,
	}}, nil
}

// nominatedPodGone says whether a refused pod may have been refused for a
// nominated one, which counts at its node in a cycle before it is bound. The
// framework reports its end as that of an assigned pod.
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
