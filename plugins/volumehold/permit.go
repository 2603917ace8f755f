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

// registerInterval is how often a verdict is offered that is faster than the
// framework. GetWaitingPod knows a pod only once every Permit plugin has
// returned, and nothing tells a plugin when that is; it is a matter of
// microseconds.
const registerInterval = time.Millisecond

// maxGathering is how long a pod waits for its PodGroup at most: the scheduling framework itself
// gives up then. A PodGroup's own timeout ends its gathering before.
const maxGathering = 15 * time.Minute

// Permit has a pod of a PodGroup wait until as many pods of the group are reserved as it needs. Any
// other pod goes on at once.
func (p *VolumeHold) Permit(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) (*fwk.Status, time.Duration) {
	if !p.core.groups.concerns(pod) {
		return nil, 0
	}
	p.core.groups.join(&member{pod: pod, node: ledger.NodeName(node)})
	return fwk.NewStatus(fwk.Wait), maxGathering
}

// offer offers a verdict for a pod that the framework may not know as waiting yet, until it is
// taken, the attempt it is for is over, or ctx is done. while runs a function unless the attempt is
// over, and says whether it did. An empty refusal lets the pod go.
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
	// Its only error is the end of ctx, and then nobody waits any more.
	_ = wait.PollUntilContextCancel(ctx, registerInterval, true, try)
}
