// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// leave notes that a pod's attempt came to nothing. The rest of its group is
// released when it had already asked, since what it asks for is all or nothing.
// It says whether the pod is to be tried again by the plugin.
func (g *groups) leave(pod *corev1.Pod) bool {
	key := groupOf(pod)
	if key.name == "" {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.members[pod.UID]
	if m == nil {
		return false // it has not come as far as Permit
	}
	m.left = true
	delete(g.members, pod.UID)
	if g.forget(key, pod.UID) {
		return false // after a failed bind the framework itself tries again
	}
	at := g.gatherings[key]
	if at == nil || at.members[pod.UID] != m {
		return true // released
	}
	delete(at.members, pod.UID)
	switch {
	case len(at.members) == 0:
		g.close(at)
	case at.asking:
		g.release(at, fmt.Sprintf("pod %s of PodGroup %s has given its node up", pod.Name, key))
	}
	return true
}

// podSettled notes that a pod is seen to be bound, or gone. One that waits in Permit
// leaves by itself.
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

// resting is how long a pod's group still rests; 0 for none.
func (g *groups) resting(pod *corev1.Pod) time.Duration {
	key := groupOf(pod)
	if key.name == "" {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(0, g.rests[key].until.Sub(g.core.now()))
}

// forget takes a pod off those that were let go; mu is held.
func (g *groups) forget(key groupKey, uid types.UID) bool {
	was := g.allowed[key][uid]
	delete(g.allowed[key], uid)
	if len(g.allowed[key]) == 0 {
		delete(g.allowed, key)
	}
	return was
}

// stuck decides what gives way when a pod of a group has no node: a gathering
// that ranks after its own and stands in its way, or else its own, so that no
// two groups wait for each other half reserved. The group that ranks first is
// never asked to give way to another, so that somebody always comes through.
func (g *groups) stuck(pod *corev1.Pod, s ledger.Snapshot, r arbiter.Request) {
	key := groupOf(pod)
	if key.name == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gatherings[key] == nil && g.core.now().Before(g.rests[key].until) {
		return // it was not tried
	}
	own := g.rank(key, pod)
	for _, other := range g.gatherings {
		if other.key != key && !other.asking && own.before(g.rankOf(other)) && g.makesRoom(other, s, r) {
			g.release(other, fmt.Sprintf("PodGroup %s gives way to %s, which comes first", other.key, key))
			return
		}
	}
	if at := g.gatherings[key]; at != nil && !at.asking {
		g.release(at, fmt.Sprintf("PodGroup %s is given up for now: pod %s has no node", key, pod.Name))
	}
}

// makesRoom says whether a request would fit one of a gathering's nodes if that
// gathering were not there.
func (g *groups) makesRoom(at *gathering, s ledger.Snapshot, r arbiter.Request) bool {
	var without ledger.Delta
	for uid := range at.members {
		without.Remove(string(uid))
	}
	view, now := s.With(&without), g.core.now()
	for _, m := range at.members {
		if g.core.arbiter.Fit(view, r, m.node, now).Allowed() {
			return true
		}
	}
	return false
}

// groupRank orders groups: the higher priority of a pod first, then the older
// first pod, then the name.
type groupRank struct {
	priority int32
	created  int64 // of the oldest pod, in seconds since the epoch
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
