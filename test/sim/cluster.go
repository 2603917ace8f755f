// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

type cluster struct {
	s     *Sim
	since map[ledger.NodeName]time.Time // since when a node is not Ready, or missing
	late  map[string]ledger.NodeName    // claims that may be bound, by name
}

func newCluster(s *Sim) *cluster {
	return &cluster{s: s, since: map[ledger.NodeName]time.Time{}, late: map[string]ledger.NodeName{}}
}

// kube-controller-manager's defaults.
const (
	gracePeriod = 50 * time.Second  // until a silent node is Unknown
	toleration  = 300 * time.Second // until its pods are evicted
	quarantine  = 40 * time.Second  // until pods of a deleted node are removed
)

func (s *Sim) provision(pod string, n ledger.NodeName) {
	p, _ := s.w.Pod(pod)
	for _, v := range p.Volumes {
		key := ledger.ClaimKey{Namespace: namespace, Name: v.Claim}
		if c, ok := s.w.Get(world.Claims, key.String()).(ledger.Claim); ok && !c.Bound && !c.Lost {
			s.cluster.late[v.Claim] = n
		}
	}
}

func (c *cluster) silent(k *kubelet) bool {
	if k.silent.IsZero() || c.s.Now().Sub(k.silent) < gracePeriod {
		return false
	}
	n, exists := c.s.w.Node(k.node)
	return exists && n.Ready != ledger.ReadyUnknown
}

func (c *cluster) evictable(p *ledger.Pod) bool {
	since, noted := c.notReady(p.Node)
	return p.Node != "" && noted && p.Phase == ledger.PodLive && c.s.Now().Sub(since) >= toleration
}

func (c *cluster) notReady(name ledger.NodeName) (time.Time, bool) {
	n, exists := c.s.w.Node(name)
	if exists && n.Ready == ledger.ReadyTrue {
		delete(c.since, name)
		return time.Time{}, false
	}
	if _, noted := c.since[name]; !noted {
		c.since[name] = c.s.Now()
	}
	return c.since[name], true
}

func (c *cluster) collectable(p *ledger.Pod) bool {
	if p.Node == "" {
		return false
	}
	since, noted := c.notReady(p.Node)
	if !noted {
		return false
	}
	n, exists := c.s.w.Node(p.Node)
	if !exists {
		return c.s.Now().Sub(since) >= quarantine
	}
	return n.OutOfService && p.Phase != ledger.PodLive && c.s.w.Deleting(p.UID)
}

func (c *cluster) bindable(p *ledger.Pod) bool {
	return p.Node == "" && p.Phase == ledger.PodLive && past(c.s.scheduler[p.UID])
}

func (c *cluster) offer(m *menu) {
	for _, k := range c.s.kubelets {
		if c.silent(k) {
			m.add(5, "cluster", "unready", string(k.node))
		}
	}
	for _, key := range c.s.w.Keys(world.Pods) {
		p, _ := c.s.w.Pod(key)
		if c.evictable(&p) {
			m.add(2, "cluster", "evict", key)
		}
		if c.collectable(&p) {
			m.add(2, "cluster", "collect", key)
		}
		if c.bindable(&p) {
			for _, k := range c.s.kubelets {
				if n, exists := c.s.w.Node(k.node); exists && n.Ready == ledger.ReadyTrue && !n.OutOfService {
					m.add(1, "cluster", "bind", key+" "+string(k.node))
				}
			}
		}
	}
	for _, key := range c.s.w.Keys(world.Claims) {
		if len(c.late) == 0 {
			break
		}
		if name := strings.TrimPrefix(key, namespace+"/"); c.late[name] != "" {
			m.add(3, "cluster", "provision", name)
		}
	}
}

func (c *cluster) act(what, arg string) bool {
	first, second, _ := strings.Cut(arg, " ")
	p, exists := c.s.w.Pod(first)
	switch {
	case what == "unready":
		return c.unready(ledger.NodeName(arg))
	case what == "provision":
		return c.bindClaim(arg)
	case what == "evict" && exists && c.evictable(&p):
		c.s.w.DeletePod(p.UID)
	case what == "collect" && exists && c.collectable(&p):
		c.s.w.Drop(world.Pods, p.UID)
	case what == "bind" && exists && c.bindable(&p):
		c.s.w.BindPast(p.UID, ledger.NodeName(second))
	default:
		return false
	}
	return true
}

func (c *cluster) unready(name ledger.NodeName) bool {
	i := slices.IndexFunc(c.s.kubelets, func(k *kubelet) bool { return k.node == name })
	if i < 0 || !c.silent(c.s.kubelets[i]) {
		return false
	}
	n, _ := c.s.w.Node(name)
	n.Ready = ledger.ReadyUnknown
	c.s.w.Put(n)
	c.notReady(name)
	return true
}

func (c *cluster) bindClaim(name string) bool {
	key := ledger.ClaimKey{Namespace: namespace, Name: name}
	claim, ok := c.s.w.Get(world.Claims, key.String()).(ledger.Claim)
	if !ok || c.late[name] == "" || claim.Lost {
		return false
	}
	delete(c.late, name)
	c.s.w.Put(ledger.PersistentVolume{Name: "pv-" + name, UID: "pv-" + name, Volume: volumeOf(name), Access: claim.Access, Claim: key, Class: claim.Class})
	claim.PersistentVolume, claim.Bound = "pv-"+name, true
	c.s.w.Put(claim)
	return true
}

func (c *cluster) due() time.Time {
	var t time.Time
	for _, k := range c.s.kubelets {
		if n, exists := c.s.w.Node(k.node); exists && n.Ready != ledger.ReadyUnknown && !k.silent.IsZero() {
			t = earlier(t, k.silent.Add(gracePeriod))
		}
	}
	for _, key := range c.s.w.Keys(world.Pods) {
		p, _ := c.s.w.Pod(key)
		since, noted := c.notReady(p.Node)
		if _, exists := c.s.w.Node(p.Node); p.Node == "" || !noted {
			continue
		} else if !exists {
			t = earlier(t, since.Add(quarantine))
		} else if p.Phase == ledger.PodLive {
			t = earlier(t, since.Add(toleration))
		}
	}
	if !t.IsZero() && !c.s.Now().Before(t) {
		return time.Time{} // already on offer
	}
	return t
}
