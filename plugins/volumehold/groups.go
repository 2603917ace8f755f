// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A released group pauses, twice as long each time: otherwise its slots would attract its next pod before
// others could use them.
const (
	restFirst = 100 * time.Millisecond
	restMost  = 10 * time.Second
)

type pause struct {
	until time.Time
	last  time.Duration
}

// groups keeps the pods of sigs.k8s.io/scheduler-plugins PodGroups in Permit until minMember pods of a
// group have a node, and then releases them together. A gathering's reservations count in this process
// only, and are given back all at once.
//
//	join ─▶ gathers ─── minMember here ──▶ allowed
//	└── no node, no room, timeout, PodGroup missing ──▶ released
//
// Safe for parallel use.
type groups struct {
	core   *core
	source groupSource
	index  *groupIndex

	looking sync.Mutex          // taken before mu, never under the queue's lock
	kept    map[groupKey]string // why its pods are not tried; guarded by looking

	mu         sync.Mutex
	gatherings map[groupKey]*gathering
	members    map[types.UID]*member           // all that wait in Permit
	allowed    map[groupKey]map[types.UID]bool // released, and not seen bound
	rests      map[groupKey]pause              // until a group is allowed
}

type gathering struct {
	key     groupKey
	cancel  context.CancelFunc
	group   podGroup
	over    bool
	members map[types.UID]*member
}

type member struct {
	pod  *corev1.Pod
	node ledger.NodeName
	left bool
}

func newGroups(c *core, source groupSource) *groups {
	return &groups{core: c, source: source, index: newGroupIndex(), kept: map[groupKey]string{}, gatherings: map[groupKey]*gathering{}, members: map[types.UID]*member{}, allowed: map[groupKey]map[types.UID]bool{}, rests: map[groupKey]pause{}}
}

// concerns says whether a pod waits for its group in Permit: it names a sigs.k8s.io/scheduler-plugins
// PodGroup, and a pod of the group has volumes. kube-scheduler itself places Kubernetes' own PodGroups.
func (g *groups) concerns(pod *corev1.Pod) bool {
	key := groupOf(pod)
	if key.name == "" || key.native {
		return false
	}
	if _, volumes := g.index.counts(key); volumes {
		return true
	}
	return len(factOf(pod).Volumes) > 0 // the queue may see the pod before the index
}

func (g *groups) join(m *member) {
	key := groupOf(m.pod)
	fact := factOf(m.pod)
	g.core.requeuer.Enlist(m.pod, fact)
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.gatherings[key]
	if at == nil {
		at = g.gather(key)
	}
	at.members[m.pod.UID], g.members[m.pod.UID] = m, m
	group, err := g.group(key)
	if err != nil {
		g.release(at, err.Error())
		return
	}
	at.group = group
	g.step(at)
}

// mu is held.
func (g *groups) gather(key groupKey) *gathering {
	ctx, cancel := context.WithCancel(g.core.process)
	at := &gathering{key: key, cancel: cancel, members: map[types.UID]*member{}}
	g.gatherings[key] = at
	go g.follow(ctx, at)
	return at
}

// follow has the group's other pods tried, and ends the gathering at its timeout.
func (g *groups) follow(ctx context.Context, at *gathering) {
	for _, pod := range g.pods(at.key) {
		if pod.Spec.NodeName == "" && !g.waits(at, pod.UID) {
			g.core.wake(ctx, pod)
		}
	}
	g.mu.Lock()
	group := at.group
	g.mu.Unlock()
	late := time.NewTimer(group.timeout)
	defer late.Stop()
	select {
	case <-ctx.Done():
	case <-late.C:
		g.end(at, fmt.Sprintf("not %d pods of PodGroup %s had room for their volumes within %s", group.minMember, at.key, group.timeout))
	}
}

func (g *groups) waits(at *gathering, uid types.UID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return at.members[uid] != nil
}

// mu is held.
func (g *groups) step(at *gathering) {
	if !at.over && len(at.members)+g.countPlaced(at) >= at.group.minMember {
		g.allow(at)
	}
}

// mu is held.
func (g *groups) countPlaced(at *gathering) int {
	uids := maps.Clone(g.allowed[at.key])
	if uids == nil {
		uids = map[types.UID]bool{}
	}
	for _, pod := range g.pods(at.key) {
		if pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && at.members[pod.UID] == nil {
			uids[pod.UID] = true
		}
	}
	return len(uids)
}

// mu is held.
func (g *groups) allow(at *gathering) {
	g.close(at)
	delete(g.rests, at.key)
	if g.allowed[at.key] == nil {
		g.allowed[at.key] = map[types.UID]bool{}
	}
	for uid, m := range at.members {
		g.allowed[at.key][uid] = true
		go g.pass(m, "")
	}
}

// end gives up a gathering with all members at once, unless it is over.
func (g *groups) end(at *gathering, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.release(at, why)
}

// release is end with mu held.
func (g *groups) release(at *gathering, why string) {
	if at.over {
		return
	}
	g.close(at)
	length := min(max(restFirst, 2*g.rests[at.key].last), restMost)
	g.rests[at.key] = pause{g.core.now().Add(length), length}
	g.core.metrics.rejected(stageReserving, reasonPodGroup)
	for _, m := range at.members {
		go g.pass(m, why)
	}
}

func (g *groups) close(at *gathering) {
	at.over = true
	at.cancel()
	delete(g.gatherings, at.key)
}

func (g *groups) pass(m *member, refusal string) {
	g.core.offer(g.core.process, m.pod.UID, refusal, func(f func()) bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		if !m.left {
			f()
		}
		return !m.left
	})
}
