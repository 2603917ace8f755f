// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// inGroupCycle returns facts as a group's scheduling cycle sees them at the nodes that a
// verdict names: without the bound pods that the cycle's nodes do not have. False: it has
// them all. A preemption for a group takes its victims out of the nodes of the scheduler's
// snapshot, and then places the group as ever; no call tells the plugin. Reserve judges by
// all that the ledger has once the group is placed in earnest.
//
// It costs the attachments and pods of the nodes.
func (p *VolumeHold) inGroupCycle(facts ledger.Snapshot, v arbiter.Verdict) (seen ledger.Snapshot, evicting bool) {
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
			for _, user := range facts.Volume(id).NodeVolume(reason.Node).Users {
				if isBound(facts, user.Pod) && !there.Has(user.Pod) && !without.Removed[user.Pod] {
					without.Remove(user.Pod)
					evicting = true
				}
			}
		}
	}
	return facts.With(without), evicting
}

// isBound says whether the ledger has a pod at a node.
func isBound(facts ledger.Snapshot, uid string) bool {
	pod := facts.Pod(uid)
	return pod != nil && pod.Node != ""
}

// PodGroupPostFilter keeps the nominations of a group while the slots of evicted pods come
// free: their volumes are being detached. Nothing more is evicted for the group meanwhile,
// as for a single pod.
func (p *VolumeHold) PodGroupPostFilter(_ context.Context, _ fwk.PodGroupCycleState, group fwk.PodGroupInfo, _ fwk.PodGroupSchedulingFunc) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	nominations := map[types.NamespacedName]*fwk.NominatingInfo{}
	var waits freeing
	s := p.core.facts.Snapshot()
	for _, pod := range group.GetUnscheduledPods() {
		at := p.nominated(pod)
		if at == "" {
			continue
		}
		nominations[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = freeing{node: ledger.NodeName(at)}.keep().NominatingInfo
		fact := factOf(pod)
		if f := p.freeing(pod, s, arbiter.PodRequest(s, &fact)); f.node != "" {
			waits = f
		}
	}
	if waits.node == "" {
		return nil, fwk.NewStatus(fwk.Unschedulable)
	}
	return &fwk.PodGroupPostFilterResult{NominatingInfos: nominations}, fwk.NewStatus(fwk.Success, waits.refusal().Reasons()...)
}
