// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

func (c *cluster) machine(n ledger.NodeName) *world.Machine {
	for _, id := range sortedKeys(c.Machines) {
		if m := c.Machines[id]; m.Node == n && !m.Replaced {
			return m
		}
	}
	return nil
}

func (c *cluster) addMachine(id string, n ledger.NodeName) *world.Machine {
	if old := c.machine(n); old != nil {
		old.Replaced = true
		c.Kubelet(old.ID).Kill()
	}
	m := c.AddMachine(id, n)
	m.Process.Registered, m.Renewed = true, c.Now
	return m
}

func (c *cluster) kubeletOf(n ledger.NodeName) world.Kubelet { return c.Kubelet(c.machine(n).ID) }

func (c *cluster) tick(m *world.Machine) bool {
	k := c.Kubelet(m.ID)
	if !k.Up {
		return false
	}
	did := c.look(k)
	did = c.end(k) || did
	did = c.unmount(k) || did
	did = c.report(k) || did
	did = c.mount(k) || did
	k.Rested() // no time passes between two ticks
	return did
}

func (c *cluster) look(k world.Kubelet) bool {
	if !k.Works() {
		return false
	}
	did := k.Register()
	c.sync()
	k.SeePods()
	k.SeeNode()
	if r, possible := k.Resolve(); possible {
		k.Resolved(c.ask(r))
		did = did || k.Synced
	}
	return did
}

func (c *cluster) end(k world.Kubelet) bool {
	did := false
	for _, uid := range sortedKeys(k.Machine().Containers) {
		did = k.Stop(uid) || did
	}
	for _, p := range k.Pods {
		if r, possible := k.Finish(p.UID); possible {
			c.ask(r)
			did = true
			c.trace("kubelet %s: ended %s", k.Machine().Node, p.Name)
		}
	}
	return did
}

func (c *cluster) unmount(k world.Kubelet) bool {
	did, m := false, k.Machine()
	for _, v := range m.Staged {
		for _, uid := range m.Mounts[v] {
			if k.Unmount(v, uid) {
				did = true
				c.trace("kubelet %s: unmounted %s", m.Node, volumeName(c, v))
			}
		}
		did = k.Unstage(v) || did
	}
	for _, v := range k.Attached {
		did = k.Leave(v) || did
	}
	for _, p := range k.Pods {
		if r, possible := k.Remove(p.UID); possible {
			c.ask(r)
			did = true
			c.trace("pod %s is gone", p.Name)
		}
	}
	if k.Works() {
		k.SeePods()
	}
	return did
}

func (c *cluster) report(k world.Kubelet) bool {
	r, possible := k.Report()
	if !possible {
		return false
	}
	was, _ := c.Node(r.Node)
	k.Reported(c.ask(r))
	if now, _ := c.Node(r.Node); !slices.Equal(was.InUse, now.InUse) || !was.Reporting {
		c.trace("kubelet %s: in use %s", r.Node, volumeNames(c, now.InUse))
	}
	return true
}

func (c *cluster) mount(k world.Kubelet) bool {
	did := false
	for _, v := range k.Desired() {
		if r, possible := k.Verify(v); possible {
			k.Verified(v, c.ask(r))
		}
		for _, p := range k.Pods { // each mount is checked anew
			if r, possible := k.Check(v); possible {
				a := world.Answer{}
				if r.Do != 0 {
					a = c.ask(r)
				}
				k.CheckedBy(v, a)
			}
			did = k.Mount(v, p.UID) && slices.Contains(k.Machine().Mounts[v], p.UID) || did
		}
	}
	for _, p := range k.Pods {
		if k.Run(p.UID) {
			did = true
			c.trace("kubelet %s: %s runs", k.Machine().Node, p.Name)
		}
	}
	return did
}

func (c *cluster) running(p ledger.Pod) bool {
	m := c.machine(p.Node)
	return m != nil && m.Containers[p.UID]
}
