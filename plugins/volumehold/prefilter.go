// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/plugins/internal/binding"
)

// PreFilter refuses a pod if no node fits, and narrows the search to the node that holds an exclusive
// volume. It skips bound pods, and pods without a driver's volume, now or later.
func (p *VolumeHold) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if pod.Spec.NodeName != "" {
		return nil, fwk.NewStatus(fwk.Skip) // resized in place, with its volumes
	}
	fact, err := convert.Pod(pod)
	if err != nil {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, err.Error())
	}
	// From now on it is gated, and woken with other gated pods.
	if why := p.core.groups.incomplete(pod); why != "" && p.core.requeuer.Gate(pod, fact) {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why)
	}
	if len(fact.Volumes) == 0 {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	attempt := p.core.requeuer.Enter(pod, fact)
	if !attempt.Based {
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "Moorage is still reading which volumes are where")
	}
	snapshot := attempt.Base
	request := rules.PodRequest(snapshot, &fact)
	if len(request.Needs) == 0 {
		p.core.requeuer.Leave(pod.UID)
		return nil, fwk.NewStatus(fwk.Skip)
	}
	if d := p.core.groups.resting(pod); d > 0 {
		p.core.requeuer.RetryAfter(pod.UID, d)
		return nil, fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("PodGroup %s had no room for all its pods, and will be tried again", groupOf(pod)))
	}
	if admissible := p.core.arbiter.Admissible(snapshot, request); !admissible.Allowed() {
		p.core.metrics.rejected(stagePlacing, string(admissible.First().Code))
		return nil, podStatus(admissible)
	}
	ofGroup := state.IsPodGroupSchedulingCycle()
	c := &cycleState{
		snapshot: snapshot, request: request, seen: &reasons{}, refused: &binding.Refusals{}, promised: &atomic.Bool{},
		freeing: sync.OnceValue(func() freeing {
			// A group's cycle nominates pods that were not tried yet.
			if !ofGroup && !attempt.Again && pod.Status.NominatedNodeName == "" {
				return freeing{}
			}
			return p.freeing(pod, snapshot, request, ofGroup)
		}),
	}
	state.Write(stateKey, c)
	if ofGroup {
		c.enter(state.GetPodGroupSchedulingCycle(), pod.UID)
	}
	return p.narrow(c, ofGroup)
}

// narrow returns the one node where a living user holds an exclusive volume. If the node is gone, it names
// the holder: the framework would only say that no node satisfied the plugin.
func (p *VolumeHold) narrow(c *cycleState, ofGroup bool) (*fwk.PreFilterResult, *fwk.Status) {
	s, r, now := c.snapshot, c.request, p.core.now()
	holder, held := p.core.arbiter.Nodes(s, r, now)
	if held && ofGroup {
		seen, _ := p.inGroupCycle(s, p.core.arbiter.Fit(s, r, "", now))
		_, held = p.core.arbiter.Nodes(seen, r, now)
	}
	if !held {
		return nil, nil
	}
	if _, err := p.handle.SnapshotSharedLister().NodeInfos().Get(string(holder)); err != nil {
		var elsewhere rules.Verdict
		for _, reason := range p.core.arbiter.Fit(s, r, "", now).Reasons {
			if reason.Node == holder {
				elsewhere.Reasons = append(elsewhere.Reasons, reason)
			}
		}
		return nil, podStatus(elsewhere)
	}
	c.holder = holder
	return &fwk.PreFilterResult{NodeNames: sets.New(string(holder))}, nil
}

// PreFilterExtensions returns the plugin: preemption and nominated pods are a delta of the snapshot.
func (p *VolumeHold) PreFilterExtensions() fwk.PreFilterExtensions { return p }

// AddPod counts a pod at the node in this cycle.
func (p *VolumeHold) AddPod(_ context.Context, state fwk.CycleState, _ *corev1.Pod, added fwk.PodInfo, node fwk.NodeInfo) *fwk.Status {
	uid := string(added.GetPod().UID)
	if c := stateOf(state); c != nil && len(added.GetPod().Spec.Volumes) > 0 && !c.fromNodes(state, uid) {
		c.delta.Add(uid, ledger.NodeName(node.Node().Name))
	}
	return nil
}

// RemovePod stops counting a pod in this cycle, for a preemption's dry run.
func (p *VolumeHold) RemovePod(_ context.Context, state fwk.CycleState, _ *corev1.Pod, removed fwk.PodInfo, _ fwk.NodeInfo) *fwk.Status {
	uid := string(removed.GetPod().UID)
	if c := stateOf(state); c != nil && !c.fromNodes(state, uid) {
		c.evicting = true
		if len(removed.GetPod().Spec.Volumes) > 0 {
			c.delta.Remove(uid)
		}
	}
	return nil
}

// SignPod lets pods share scheduling results if their volumes never have a driver. It refuses pods with a
// claim, a driver's inline volume, or a broken volume source. Their fit depends on reservations, which
// change with each pod, and an exclusive volume fits no two pods alike.
func (p *VolumeHold) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	if len(pod.Spec.Volumes) == 0 {
		return nil, nil
	}
	if fact, err := convert.Pod(pod); err != nil || len(fact.Volumes) > 0 {
		return nil, fwk.NewStatus(fwk.Unschedulable, "the pod has volumes that a node may have no room for")
	}
	return nil, nil
}
