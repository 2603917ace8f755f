// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/plugins/extender/internal/wire"
)

// preempt keeps the nodes where a pod would have its volumes after the scheduler's evictions. For missing
// slots it adds pods of a lower priority, as few and as unimportant as possible. It ignores disruption
// budgets, and does not change their count. While a slot that an earlier preemption freed is being
// detached, no node is left.
func (x *Extender) preempt(p wire.Preemption) extenderv1.ExtenderPreemptionResult {
	result := extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: map[string]*extenderv1.MetaVictims{}}
	fact, err := convert.Pod(p.Pod)
	if err != nil {
		return result
	}
	// The scheduler keeps the pod from its queue during its evictions.
	x.requeuer.Keep(p.Pod.UID)
	s, now := x.Facts.Snapshot(), x.Now()
	if x.awaitsFreed(p.Pod, rules.PodRequest(s, &fact), s, now) {
		return result
	}
	for node, victims := range p.Victims {
		t := trial{x: x, s: s, pod: p.Pod, fact: &fact, node: ledger.NodeName(node), now: now}
		if more, ok := t.victims(victims.Pods); ok {
			victims.Pods = append(victims.Pods, more...)
			result.NodeNameToMetaVictims[node] = victims
		}
	}
	return result
}

// awaitsFreed says whether a slot freed for the pod is being detached: no further eviction yet.
func (x *Extender) awaitsFreed(pod *corev1.Pod, r rules.Request, s ledger.Snapshot, now time.Time) bool {
	node := ledger.NodeName(pod.Status.NominatedNodeName)
	if node == "" || x.arbiter.Fit(s, r, node, now).Allowed() {
		x.requeuer.Freed(pod.UID)
		return false
	}
	_, waits := x.requeuer.AwaitFreed(pod.UID, node, x.arbiter.FreesSlots(s, r, node, now))
	return waits
}

type trial struct {
	x    *Extender
	s    ledger.Snapshot
	pod  *corev1.Pod
	fact *ledger.Pod
	node ledger.NodeName
	now  time.Time
}

// victims returns further pods to evict, and whether that is enough.
func (t trial) victims(chosen []*extenderv1.MetaPod) (more []*extenderv1.MetaPod, ok bool) {
	without := t.x.nominees.at(string(t.node), t.pod, t.s)
	if without == nil {
		without = &ledger.Delta{}
	}
	for _, victim := range chosen {
		without.Remove(victim.UID)
	}
	if t.fits(without) {
		return nil, true
	}
	others := t.others(without)
	for _, other := range others {
		without.Remove(string(other.UID))
	}
	if !t.fits(without) {
		return nil, false
	}
	// Spare as many as possible, the most important first.
	for _, other := range others {
		spared := without.Clone()
		spared.Add(string(other.UID), t.node)
		if t.fits(spared) {
			without = spared
			continue
		}
		more = append(more, &extenderv1.MetaPod{UID: string(other.UID)})
	}
	return more, true
}

func (t trial) fits(d *ledger.Delta) bool {
	s := t.s.With(d)
	request := rules.PodRequest(s, t.fact)
	return len(request.Needs) == 0 || t.x.arbiter.Fit(s, request, t.node, t.now).Allowed()
}

// others are the node's remaining pods with attachable volumes and a lower priority, the most important
// first.
func (t trial) others(without *ledger.Delta) []*corev1.Pod {
	node := t.s.Node(t.node)
	if node == nil {
		return nil
	}
	var list []*corev1.Pod
	seen := map[string]bool{}
	for _, id := range node.At() {
		place := t.s.Volume(id).OnNode(t.node)
		if place == nil {
			continue
		}
		for _, user := range place.Users {
			if user.Pod == "" || seen[user.Pod] || without.Removed[user.Pod] {
				continue
			}
			seen[user.Pod] = true
			if pod := t.evictable(user.Pod); pod != nil {
				list = append(list, pod)
			}
		}
	}
	slices.SortFunc(list, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(priority(b), priority(a)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	return list
}

// evictable returns a pod that runs at the node and may be evicted, or nil. A pod of unknown
// priority may not.
func (t trial) evictable(uid string) *corev1.Pod {
	fact := t.s.Pod(uid)
	if fact == nil || fact.Node != t.node || fact.Phase != ledger.PodLive || fact.Mirror {
		return nil
	}
	pod, ok := t.x.Facts.Pod(fact.Namespace, fact.Name)
	if !ok || string(pod.UID) != uid || priority(pod) >= priority(t.pod) {
		return nil
	}
	return pod
}
