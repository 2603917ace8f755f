// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// freeing is a slot that comes free for a pod: kube-scheduler has evicted pods for it, and their volumes
// are not detached yet. Until then, or until the time is over, no further pod is evicted. Stock
// kube-scheduler waits this way for terminating pods only.
type freeing struct {
	node  ledger.NodeName // empty: no slot
	until time.Time
}

// A group's cycle may ask several times; otherwise ask once per attempt. In its first attempt a pod has no
// nomination, unless an earlier process wrote it.
func (p *VolumeHold) freeing(pod *corev1.Pod, s ledger.Snapshot, r rules.Request, ofGroup bool) freeing {
	c, at := p.core, ledger.NodeName(p.nominated(pod))
	if at == "" || c.arbiter.Fit(s, r, at, c.now()).Allowed() {
		c.requeuer.Freed(pod.UID)
		return freeing{}
	}
	frees := c.arbiter.FreesSlots(s, r, at, c.now())
	var until time.Time
	var waits bool
	if ofGroup {
		until, waits = c.requeuer.AwaitFreedInGroup(pod, at, frees)
	} else {
		until, waits = c.requeuer.AwaitFreed(pod.UID, at, frees)
	}
	if !waits {
		return freeing{}
	}
	return freeing{at, until}
}

// nominated reads the scheduler's memory: the pod in the queue and in the lister may be older, and the API
// server may have refused the write. It copies each nominated pod: a pod's first attempt does not ask.
func (p *VolumeHold) nominated(pod *corev1.Pod) string { return p.nominations()[pod.UID] }

func (p *VolumeHold) nominations() map[types.UID]string {
	infos, err := p.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil // the cycle fails by itself
	}
	at := map[types.UID]string{}
	for _, info := range infos {
		for _, nominee := range p.handle.NominatedPodsForNode(info.Node().Name) {
			at[nominee.GetPod().UID] = info.Node().Name
		}
	}
	return at
}

func (f freeing) refusal() *fwk.Status {
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf(
		"nothing more is evicted for the pod before %s: a slot comes free at %s as soon as what was used there is detached", f.until.UTC().Format(time.RFC3339), f.node))
}

// keep keeps a nomination that a preemption without victims would clear.
func (f freeing) keep() *fwk.PostFilterResult {
	return &fwk.PostFilterResult{NominatingInfo: &fwk.NominatingInfo{NominatedNodeName: string(f.node), NominatingMode: fwk.ModeOverride}}
}
