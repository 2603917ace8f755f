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
	"github.com/moorage-dev/moorage/plugins/internal/reservation"
)

// A group that was released rests, twice as long each time: what its own pods
// gave back would else lure the next of them in at once, before anybody who
// could use it.
const (
	restFirst = 100 * time.Millisecond
	restMost  = 10 * time.Second
)

// pause is what a released group takes.
type pause struct {
	until time.Time
	last  time.Duration
}

// groups keep the pods of PodGroups in Permit until minMember of one have a
// node, and let them go together once all their tickets are granted. Until then
// no ticket is written: what a gathering reserves counts in this process only,
// and is given back all at once.
//
//	join ─▶ gathers ─── minMember here ──▶ asks ─── all granted ──▶ allowed
//	           └── no node, no room, timeout, PodGroup missing, member lost ──▶ released
//
// Gangs of Kubernetes' own PodGroups are gathered in the same way, so that a refused
// ticket leaves no part of a gang bound.
//
// Safe for parallel use. Lock order: mu before the book's.
type groups struct {
	core   *core
	source groupSource
	index  *groupIndex

	looking sync.Mutex          // taken before mu and never with the scheduling queue's lock held
	kept    map[groupKey]string // why the pods of a group are not tried; guarded by looking

	mu         sync.Mutex
	gatherings map[groupKey]*gathering
	members    map[types.UID]*member           // all that wait in Permit for a group
	allowed    map[groupKey]map[types.UID]bool // let go, and not seen to be bound
	rests      map[groupKey]pause              // of groups that were released, and not let go since
}

// gathering is one attempt of a group.
type gathering struct {
	key     groupKey
	cancel  context.CancelFunc
	group   podGroup
	asking  bool
	over    bool
	members map[types.UID]*member
}

// member is a pod in Permit.
type member struct {
	pod         *corev1.Pod
	node        ledger.NodeName
	reservation *reservation.Reservation // nil without attachable volumes
	terms       terms

	asked   bool
	verdict *verdict // nil until it is known
	left    bool
}

func newGroups(c *core, source groupSource) *groups {
	return &groups{core: c, source: source, index: newGroupIndex(), kept: map[groupKey]string{}, gatherings: map[groupKey]*gathering{}, members: map[types.UID]*member{}, allowed: map[groupKey]map[types.UID]bool{}, rests: map[groupKey]pause{}}
}

// concerns says whether a pod is to wait for its group: it names one, and it or
// another pod of the group has volumes to reserve.
func (g *groups) concerns(pod *corev1.Pod, reserved bool) bool {
	key := groupOf(pod)
	if key.native {
		if group, err := g.group(key); err == nil && group.minMember <= 1 {
			return false // each of its pods is placed by itself
		}
	}
	if key.name == "" || reserved {
		return key.name != ""
	}
	_, volumes := g.index.counts(key)
	return volumes
}

// join has a pod wait for its group.
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

// gather begins a group's gathering; mu is held.
func (g *groups) gather(key groupKey) *gathering {
	ctx, cancel := context.WithCancel(g.core.process)
	at := &gathering{key: key, cancel: cancel, members: map[types.UID]*member{}}
	g.gatherings[key] = at
	go g.follow(ctx, at)
	return at
}

// follow has the others of a gathering's group tried, and ends the gathering when it
// takes too long.
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

// step takes a gathering as far as it goes; mu is held.
func (g *groups) step(at *gathering) {
	if at.over {
		return
	}
	if len(at.members)+g.countPlaced(at) < at.group.minMember {
		return
	}
	at.asking = true
	all := true
	for _, m := range at.members {
		switch {
		case m.reservation == nil:
			m.verdict = &verdict{}
		case !m.asked:
			m.asked, all = true, false
			go g.ask(at, m)
		case m.verdict == nil:
			all = false
		}
	}
	if all {
		g.allow(at)
	}
}

// countPlaced counts pods of the group that are bound, or on their way to it; mu is
// held.
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

// ask has a member's ticket written, and follows it to the verdict.
func (g *groups) ask(at *gathering, m *member) {
	ctx, written := g.core.book.Write(g.core.process, m.reservation)
	if !written {
		return // it leaves, or has left
	}
	v := g.core.obtain(ctx, m.reservation, m.terms)
	switch {
	case v.ended:
	case v.refusal != "":
		g.end(at, fmt.Sprintf("pod %s of PodGroup %s: %s", m.pod.Name, at.key, v.refusal))
	default:
		g.mu.Lock()
		m.verdict = &v
		g.step(at)
		g.mu.Unlock()
	}
}

// allow lets the members go; mu is held.
func (g *groups) allow(at *gathering) {
	g.close(at)
	delete(g.rests, at.key)
	if g.allowed[at.key] == nil {
		g.allowed[at.key] = map[types.UID]bool{}
	}
	for uid, m := range at.members {
		g.allowed[at.key][uid] = true
		if m.reservation != nil {
			go g.core.deliver(g.core.process, m.reservation, *m.verdict)
		} else {
			go g.pass(m, "")
		}
	}
}

// end releases a gathering's members, all at once, unless it is over.
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

// pass offers a verdict to the framework for a member that has not left.
func (g *groups) pass(m *member, refusal string) {
	g.core.offer(g.core.process, m.pod.UID, offer{
		refusal: refusal,
		while: func(f func()) bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			if !m.left {
				f()
			}
			return !m.left
		},
		allow: func() {},
	})
}
