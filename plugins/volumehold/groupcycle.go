// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// inGroupCycle returns facts without bound pods that a group's cycle lacks at a verdict's nodes; false: it
// lacks none. A preemption for a group takes its victims out of the scheduler's snapshot, and then places
// the group as usual; no call tells the plugin.
//
// It costs the attachments and pods of the nodes.
func (p *VolumeHold) inGroupCycle(facts ledger.Snapshot, v rules.Verdict) (seen ledger.Snapshot, evicting bool) {
	without := &ledger.Delta{}
	if dryRun := facts.Delta(); dryRun != nil {
		without = dryRun.Clone()
	}
	for _, reason := range v.Reasons {
		node := facts.Node(reason.Node)
		info, err := p.handle.SnapshotSharedLister().NodeInfos().Get(string(reason.Node))
		if node == nil || err != nil {
			continue
		}
		there := sets.New[string]()
		for _, pod := range info.GetPods() {
			there.Insert(string(pod.GetPod().UID))
		}
		for _, id := range node.At() {
			for _, user := range facts.Volume(id).OnNode(reason.Node).Users {
				if isBound(facts, user.Pod) && !there.Has(user.Pod) && !without.Removed[user.Pod] {
					without.Remove(user.Pod)
					evicting = true
				}
			}
		}
	}
	return facts.With(without), evicting
}

func isBound(facts ledger.Snapshot, uid string) bool {
	pod := facts.Pod(uid)
	return pod != nil && pod.Node != ""
}

// groupState has a group cycle's tried pods, by UID. A preemption for the group has its own state.
type groupState struct{ pods map[types.UID]*cycleState }

// Clone returns the state itself.
func (g *groupState) Clone() fwk.StateData { return g }

func groupStateOf(cycle fwk.PodGroupCycleState) map[types.UID]*cycleState {
	data, err := cycle.Read(stateKey)
	if err != nil {
		return nil
	}
	g, ok := data.(*groupState)
	if !ok {
		return nil
	}
	return g.pods
}

// enter: the refusals of all placements count, and the rest is the last one's.
func (c *cycleState) enter(cycle fwk.PodGroupCycleState, uid types.UID) {
	pods := groupStateOf(cycle)
	if pods == nil {
		pods = map[types.UID]*cycleState{}
		cycle.Write(stateKey, &groupState{pods})
	}
	if earlier := pods[uid]; earlier != nil {
		c.seen, c.refused, c.promised = earlier.seen, earlier.refused, earlier.promised
	}
	pods[uid] = c
}

// PodGroupPostFilter does PostFilter's work for a group's pods: kube-scheduler does not call PostFilter in
// a group's cycle. It calls this unless an earlier plugin has evicted pods for the group, or has said that
// nothing can help, as DefaultPreemption does without pods of lower priority.
//
// It keeps the group's nominations while evicted pods' volumes are being detached: no further pod is
// evicted meanwhile.
//
// A nomination whose write was refused ends when the cycle assumes its pod. A later attempt without a node
// writes it again: only a slot that comes free before may go to another pod.
func (p *VolumeHold) PodGroupPostFilter(_ context.Context, cycle fwk.PodGroupCycleState, group fwk.PodGroupInfo, _ fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	states, at := groupStateOf(cycle), p.nominations()
	var waits freeing
	for _, pod := range group.GetUnscheduledPods() {
		p.core.requeuer.Rejected(pod.UID)
		if c := states[pod.UID]; c != nil && !c.placed {
			p.noteRefusals(pod, c)
		}
		if at[pod.UID] == "" {
			p.core.requeuer.Freed(pod.UID)
			continue
		}
		if f := p.freeingInGroup(pod, states[pod.UID]); f.node != "" {
			waits = f
		}
		p.core.requeuer.NothingEvicted(pod.UID)
	}
	if waits.node == "" {
		return nil, fwk.NewStatus(fwk.Unschedulable, p.groupElsewhere(group, states)...)
	}
	kept := map[types.NamespacedName]*fwk.NominatingInfo{}
	for _, pod := range group.GetUnscheduledPods() {
		if node := at[pod.UID]; node != "" {
			kept[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = freeing{node: ledger.NodeName(node)}.keep().NominatingInfo
		}
	}
	return &fwk.PodGroupPostFilterResult{NominatingInfos: kept}, fwk.NewStatus(fwk.Success, waits.refusal().Reasons()...)
}

// c is nil if the cycle ended before the pod was tried.
func (p *VolumeHold) freeingInGroup(pod *corev1.Pod, c *cycleState) freeing {
	if c != nil {
		return c.freeing()
	}
	s, fact := p.core.facts.Snapshot(), factOf(pod)
	return p.freeing(pod, s, rules.PodRequest(s, &fact), true)
}

// noteRefusals retries a pod if no change of the ledger would.
func (p *VolumeHold) noteRefusals(pod *corev1.Pod, c *cycleState) {
	c.seen.each(func(code ledger.Code) { p.core.metrics.rejected(stagePlacing, string(code)) })
	p.core.placer.Refused(factOf(pod), c.refused, c.holder != "")
	if c.promised.Load() {
		// The ledger knows no nominations, and may not change with the end of one.
		p.core.requeuer.Retry(pod.UID)
	}
}

// groupElsewhere says why nodes outside PreFilter's choice were refused, with the pods grouped by message.
func (p *VolumeHold) groupElsewhere(group fwk.PodGroupInfo, states map[types.UID]*cycleState) []string {
	var said []string
	pods := map[string][]string{} // by their message
	for _, pod := range group.GetUnscheduledPods() {
		c := states[pod.UID]
		if c == nil || c.placed {
			continue
		}
		if why := p.elsewhere(c); why != "" {
			if pods[why] == nil {
				said = append(said, why)
			}
			pods[why] = append(pods[why], pod.Name)
		}
	}
	for i, why := range said {
		of := "pod " + pods[why][0]
		if others := len(pods[why]) - 1; others > 0 {
			of += fmt.Sprintf(" and %d more", others)
		}
		said[i] = of + ": " + why
	}
	return said
}
