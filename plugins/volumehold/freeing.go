// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// freeing is a slot that comes free for a pod: kube-scheduler has evicted pods for it
// at a node, and their volumes are not detached from there yet. Until they are, or
// until the time is over, nothing more is evicted for the pod. Stock kube-scheduler
// waits in the same way for pods that are terminating, and knows no detach.
type freeing struct {
	node  ledger.NodeName // empty: no slot comes free
	until time.Time
}

// freeing says whether a slot comes free for a pod at the node it is nominated to. The
// nomination is read from the lister as well: the pod in the scheduling queue may be
// older.
func (c *core) freeing(pod *corev1.Pod, s ledger.Snapshot, r arbiter.Request) freeing {
	node := pod.Status.NominatedNodeName
	if newer, err := c.pods.Pods(pod.Namespace).Get(pod.Name); err == nil && newer.UID == pod.UID {
		node = newer.Status.NominatedNodeName
	}
	at := ledger.NodeName(node)
	if node == "" || c.arbiter.Fit(s, r, at, c.now()).Allowed() {
		return freeing{}
	}
	until, waits := c.requeuer.AwaitFreed(pod.UID, at, c.arbiter.FreesSlots(s, r, at, c.now()))
	if !waits {
		return freeing{}
	}
	return freeing{at, until}
}

// refusal is the status of every node in a preemption's dry run, and what the pod is
// told.
func (f freeing) refusal() *fwk.Status {
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf(
		"nothing more is evicted for the pod before %s: a slot comes free at %s as soon as what was used there is detached", f.until.UTC().Format(time.RFC3339), f.node))
}

// keep keeps the pod's nomination, which a preemption that finds nobody to evict would
// clear.
func (f freeing) keep() *fwk.PostFilterResult {
	return &fwk.PostFilterResult{NominatingInfo: &fwk.NominatingInfo{NominatedNodeName: string(f.node), NominatingMode: fwk.ModeOverride}}
}
