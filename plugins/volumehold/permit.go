// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// registerInterval is for a verdict faster than the framework. GetWaitingPod knows a pod only once all
// Permit plugins have returned, within microseconds.
const registerInterval = time.Millisecond

// maxGathering is a pod's longest wait for its PodGroup: the framework gives up then.
const maxGathering = 15 * time.Minute

// Permit has a PodGroup's pod wait until enough of its pods are reserved. Other pods continue at once.
func (p *VolumeHold) Permit(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) (*fwk.Status, time.Duration) {
	if !p.core.groups.concerns(pod) {
		return nil, 0
	}
	p.core.groups.join(&member{pod: pod, node: ledger.NodeName(node)})
	return fwk.NewStatus(fwk.Wait), maxGathering
}

// offer repeats a verdict for a pod that may not be known as waiting yet, until it is taken, the attempt is
// over, or ctx is done. while says whether it ran a function: not after the attempt. An empty refusal
// releases the pod.
func (c *core) offer(ctx context.Context, uid types.UID, refusal string, while func(func()) bool) {
	try := func(context.Context) (taken bool, err error) {
		current := while(func() {
			waiting := c.handle.GetWaitingPod(uid)
			switch {
			case waiting == nil:
				return
			case refusal == "":
				waiting.Allow(Name)
			default:
				waiting.Reject(Name, refusal)
			}
			taken = true
		})
		return taken || !current, nil
	}
	// The only error is ctx's: no pod waits then.
	_ = wait.PollUntilContextCancel(ctx, registerInterval, true, try)
}
