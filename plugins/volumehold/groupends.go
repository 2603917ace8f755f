// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// leave says whether the plugin must retry the pod.
func (g *groups) leave(pod *corev1.Pod) bool {
	key := groupOf(pod)
	if key.name == "" {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.members[pod.UID]
	if m == nil {
		return false // before Permit
	}
	m.left = true
	delete(g.members, pod.UID)
	if g.forget(key, pod.UID) {
		return false // the framework retries a failed bind
	}
	at := g.gatherings[key]
	if at == nil || at.members[pod.UID] != m {
		return true // released
	}
	delete(at.members, pod.UID)
	if len(at.members) == 0 {
		g.close(at)
	}
	return true
}

// podSettled: the pod is bound, or gone. A pod that waits in Permit leaves by itself.
func (g *groups) podSettled(pod *corev1.Pod) {
	key := groupOf(pod)
	if key.name == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget(key, pod.UID)
	if len(g.pods(key)) == 0 {
		delete(g.rests, key)
	}
	if pod.Spec.NodeName != "" {
		delete(g.members, pod.UID)
	}
	if at := g.gatherings[key]; at != nil {
		g.step(at)
	}
}

func (g *groups) resting(pod *corev1.Pod) time.Duration {
	key := groupOf(pod)
	if key.name == "" {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(0, g.rests[key].until.Sub(g.core.now()))
}

// keptByRest keeps a pod during its group's pause, unless it has no attachable volumes.
func (g *groups) keptByRest(pod *corev1.Pod) bool {
	fact, s := factOf(pod), g.core.facts.Snapshot()
	return g.resting(pod) > 0 && rules.PodRequest(s, &fact).Attachable(s)
}

// mu is held.
func (g *groups) forget(key groupKey, uid types.UID) bool {
	was := g.allowed[key][uid]
	delete(g.allowed[key], uid)
	if len(g.allowed[key]) == 0 {
		delete(g.allowed, key)
	}
	return was
}

// stuck decides which gathering gives way when a pod of a group has no node: one that ranks after its own
// and blocks it, or else its own, so that no two half-reserved groups wait for each other. The first group
// in rank never gives way. A pod of a group without a gathering takes nothing from gatherings.
func (g *groups) stuck(ctx context.Context, state fwk.CycleState, pod *corev1.Pod) {
	key := groupOf(pod)
	if !g.concerns(pod) {
		return
	}
	others, tried := g.ranksAfter(key, pod)
	if !tried || stateOf(state) == nil && g.keptByRest(pod) {
		return
	}
	for _, other := range others {
		if g.makesRoom(ctx, state, pod, other.members) && g.yield(other.gathering, fmt.Sprintf("PodGroup %s gives way to %s, which comes first", other.key, key)) {
			return
		}
	}
	g.mu.Lock()
	at := g.gatherings[key]
	g.mu.Unlock()
	if at != nil {
		g.yield(at, fmt.Sprintf("PodGroup %s is given up for now: pod %s has no node", key, pod.Name))
	}
}

type candidate struct {
	*gathering
	members []*member
}

// False: the group pauses, and the pod was not tried.
func (g *groups) ranksAfter(key groupKey, pod *corev1.Pod) (others []candidate, tried bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gatherings[key] == nil && g.core.now().Before(g.rests[key].until) {
		return nil, false
	}
	own := g.rank(key, pod)
	for _, other := range g.gatherings {
		if other.key != key && own.before(g.rankOf(other)) {
			others = append(others, candidate{other, slices.Collect(maps.Values(other.members))})
		}
	}
	return others, true
}

// yield releases a gathering; false: it is over.
func (g *groups) yield(at *gathering, why string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at.over {
		return false
	}
	g.release(at, why)
	return true
}

// makesRoom says whether a pod would fit a gathering's node only without the gathering: by all plugins of
// the profile, since members use other resources too.
func (g *groups) makesRoom(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, members []*member) bool {
	handle, without := g.core.handle, state.Clone()
	nodes := map[ledger.NodeName]fwk.NodeInfo{} // without the members
	for _, m := range members {
		if nodes[m.node] == nil {
			info, err := handle.SnapshotSharedLister().NodeInfos().Get(string(m.node))
			if err != nil {
				continue // unknown to the cycle
			}
			nodes[m.node] = info.Snapshot()
		}
		if !g.takeOut(ctx, without, pod, m, nodes[m.node]) {
			return false
		}
	}
	for name, node := range nodes {
		with, err := handle.SnapshotSharedLister().NodeInfos().Get(string(name))
		if err == nil && !handle.RunFilterPlugins(ctx, state.Clone(), pod, with).IsSuccess() && handle.RunFilterPlugins(ctx, without, pod, node).IsSuccess() {
			return true
		}
	}
	return false
}

// takeOut takes a member out of a dry run. The plugin knows it by its reservation, others by the cycle's
// view of the node.
func (g *groups) takeOut(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, m *member, node fwk.NodeInfo) bool {
	if c := stateOf(state); c != nil {
		c.delta.Remove(string(m.pod.UID))
	}
	for _, known := range slices.Clone(node.GetPods()) {
		if known.GetPod().UID == m.pod.UID {
			return node.RemovePod(klog.FromContext(ctx), known.GetPod()) == nil &&
				g.core.handle.RunPreFilterExtensionRemovePod(ctx, state, pod, known, node).IsSuccess()
		}
	}
	return true
}

type groupRank struct {
	priority int32
	created  int64 // of the oldest pod, Unix seconds
	key      groupKey
}

func (a groupRank) before(b groupRank) bool {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.created, b.created), cmp.Compare(a.key.String(), b.key.String())) < 0
}

func (g *groups) rankOf(at *gathering) groupRank {
	for _, m := range at.members {
		return g.rank(at.key, m.pod)
	}
	return groupRank{key: at.key}
}

func (g *groups) rank(key groupKey, pod *corev1.Pod) groupRank {
	r := groupRank{priority: corev1helpers.PodPriority(pod), created: pod.CreationTimestamp.Unix(), key: key}
	for _, p := range g.pods(key) {
		r.created = min(r.created, p.CreationTimestamp.Unix())
	}
	return r
}
