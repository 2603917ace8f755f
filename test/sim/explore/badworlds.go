// SPDX-License-Identifier: Apache-2.0

package explore

import "github.com/moorage-dev/moorage/internal/ledger"

// Bad are worlds as bad as real clusters in which no rule is broken, with the faults of a restarting or
// broken kubelet. TestLarge prints how far each is searched.
func Bad() []World {
	return []World{
		{"a stuck unmount, a restart, two leaders", bad(func(c *Config) { c.Stuck, c.Restarts, c.Leaders = 1, 1, 2 })},
		{"not ready", bad(func(c *Config) { c.Broken = 1 })},
		{"not ready, two leaders", bad(func(c *Config) { c.Broken, c.Leaders = 1, 2 })},
		{"not ready, a restart", bad(func(c *Config) { c.Broken, c.Restarts = 1, 1 })},
		{"not ready, forced by time", bad(func(c *Config) { c.Broken, c.Impatient = 1, true })},
		{"a forgotten mount, the node's word required, two leaders", spoken(func(c *Config) { c.Leaders = 2 })},
		{"a forgotten mount, the node's word", spoken(func(c *Config) { c.RequireWord = false })},
		{"a forgotten mount, the node's word, and no more heard", spoken(func(c *Config) { c.RequireWord, c.Mute = false, 1 })},
		{"a reboot that leaves records, the node's word required", rebooted(func(*Config) {})},
		{"a reboot that leaves records, the node's word", rebooted(func(c *Config) { c.RequireWord = false })},
		{"a reboot that leaves records, two leaders", rebooted(func(c *Config) { c.Leaders = 2 })},
		{"a forgotten mount, the node's word required, moorage-node anew", spoken(func(c *Config) { c.Anew = 1 })},
		{"a forgotten mount, the node's word required, NodeMountReport deleted", spoken(func(c *Config) { c.Erased = 1 })},
		{"a forgotten mount, the node's word required, a lost answer", spoken(func(c *Config) { c.LostAnswers = 1 })},
		{"a pod bound by others, a stuck unmount, without VolumeAttachments, two leaders", noAttach(func(c *Config) {
			c.Placed, c.Foreign, c.Stuck = []int{0, 0}, []bool{true, false}, 1
		})},
		{"a Node made again, without VolumeAttachments", noAttach(func(c *Config) { c.Leaders, c.Remade = 1, 1 })},
		{"a stuck unmount, a restart, without VolumeAttachments", noAttach(func(c *Config) { c.Leaders, c.Stuck, c.Restarts = 1, 1, 1 })},
		{"a Node made again", bad(func(c *Config) { c.Remade = 1 })},
		{"a Node made again, a stuck unmount", bad(func(c *Config) { c.Remade, c.Stuck = 1, 1 })},
		{"a Node made again, two leaders", bad(func(c *Config) { c.Remade, c.Leaders = 1, 2 })},
		{"a Node made again, moorage-node", remade(func(*Config) {})},
		{"a Node made again, a stuck unmount, moorage-node", remade(func(c *Config) { c.Stuck = 1 })},
		{"a Node made again, two leaders, moorage-node", remade(func(c *Config) { c.Leaders = 2 })},
		{"a Node made again, moorage-node that ends", remade(func(c *Config) { c.Mute = 1 })},
		{"a vanished PersistentVolume", vanishing(1)},
		{"a vanished PersistentVolume, two leaders", vanishing(2)},
		{"a dead node, fenced by a condition", fences(1, func(*Config) {})},
		{"a dead node, fenced by a condition, two leaders", fences(2, func(*Config) {})},
		{"a dead node that is back, fenced by a condition", fences(1, func(c *Config) { c.Returns = true })},
		{"a dead node that is back, fenced by a condition, two leaders", fences(2, func(c *Config) { c.Returns = true })},
		{"a dead node that is back, fenced by a condition, and silent again", fences(1, func(c *Config) { c.Returns, c.Silences = true, 1 })},
		{"a silence, cut off by the storage", cutsOff(1, func(*Config) {})},
		{"a silence, cut off by the storage, two leaders", cutsOff(2, func(*Config) {})},
		{"a silence, a stuck unmount, cut off by the storage", cutsOff(1, stuck)},
		{"a silence, a restart, cut off by the storage", cutsOff(1, func(c *Config) { c.Restarts = 1 })},
		{"a dead node, cut off by the storage", cutsOff(1, func(c *Config) { c.Silences, c.DeadNodes = 0, 1 })},
		{"a dead node that is back, cut off by the storage", cutsOff(1, func(c *Config) { c.Silences, c.DeadNodes, c.Returns = 0, 1, true })},
		{"a dead node that is back, cut off by the storage, two leaders", cutsOff(2, func(c *Config) { c.Silences, c.DeadNodes, c.Returns = 0, 1, true })},
		{"a silence, forced by time", silence(1, func(*Config) {})},
		{"a silence, forced by time, two leaders", silence(2, func(*Config) {})},
		{"a silence, forced by time, Leases, two leaders", silence(2, leases)},
		{"a silence, a stuck unmount, forced by time", silence(1, stuck)},
		{"a silence, a stuck unmount, forced by time, two leaders", silence(2, stuck)},
		{"a silence, a stuck unmount, forced by time, Leases", silence(1, func(c *Config) { stuck(c); leases(c) })},
		{"a silence, and a ticket that ends", unheard(1, ledger.AccessNode)},
		{"a silence, and a ticket that ends, two leaders", unheard(2, ledger.AccessNode)},
		{"a silence, and a ticket for a shared volume that ends", unheard(1, ledger.AccessMany)},
		{"a silence, and a ticket for a shared volume that ends, two leaders", unheard(2, ledger.AccessMany)},
		{"a silence, cut off by unpublish", silence(1, unpublishes)},
		{"a silence, a stuck unmount, cut off by unpublish", silence(1, func(c *Config) { stuck(c); unpublishes(c) })},
		{"a silence, cut off by unpublish, two leaders", silence(2, unpublishes)},
	}
}

// Residual are worlds in which rules are broken by faults that no fact in the API shows, under any
// controller. Each must be found broken, like the scripts of internal/rules/testdata/residual, which play
// the other risks.
func Residual() []World {
	return []World{
		{"a kubelet killed between NodeUnpublish and NodeUnstage", bad(func(c *Config) { c.Restarts, c.Forgetful = 1, true })},
		{"a machine that lives, forced by time alone", silence(1, func(c *Config) { c.Strict = ByTime })},
		{"a node that is Ready again before its forced deletion", silence(1, func(c *Config) { c.Strict = Overtaken })},
	}
}

// bad is a handover under one leader with a fault.
func bad(change func(*Config)) Config {
	c := Handover()
	c.Leaders = 1
	change(&c)
	return c
}

// spoken is a handover with a kubelet killed between NodeUnpublish and NodeUnstage, and with a required
// moorage-node on each machine.
func spoken(change func(*Config)) Config {
	return bad(func(c *Config) {
		c.Restarts, c.Forgetful, c.Agents, c.RequireWord = 1, true, true, true
		change(c)
	})
}

// rebooted is a handover with a rebooted machine: its moorage-node finds records of earlier staged volumes.
func rebooted(change func(*Config)) Config {
	return spoken(func(c *Config) {
		c.Restarts, c.Reboots = 0, 1
		change(c)
	})
}

// remade is a handover in which a Node is deleted, and made again by the same boot, with moorage-node on
// each machine.
func remade(change func(*Config)) Config {
	return bad(func(c *Config) {
		c.Remade, c.Agents = 1, true
		change(c)
	})
}

// shared is a shared volume, and a pod that has it and may be deleted, under one leader.
func shared(change func(*Config)) Config {
	return bad(func(c *Config) {
		c.Pods, c.Placed, c.Foreign, c.Deletable = [][]int{{1}}, []int{1}, []bool{false}, []bool{true}
		c.Access = []ledger.Access{ledger.AccessMany}
		change(c)
	})
}

// silence is a kubelet that ends for a while, whose volume is taken by time alone.
func silence(leaders int, change func(*Config)) Config {
	return bad(func(c *Config) {
		c.Leaders, c.Silences, c.Impatient = leaders, 1, true
		change(c)
	})
}

// fences is a dead machine with a Node condition that says so.
func fences(leaders int, change func(*Config)) Config {
	return bad(func(c *Config) {
		c.Leaders, c.DeadNodes, c.Fences, c.Leases, c.Renewals = leaders, 1, true, true, 1
		change(c)
	})
}

// cutsOff is a kubelet that ends for a while, whose machine the storage cuts off.
func cutsOff(leaders int, change func(*Config)) Config {
	return bad(func(c *Config) {
		c.Leaders, c.Silences, c.CutsOff, c.Agents = leaders, 1, true, true
		change(c)
	})
}

func stuck(c *Config) { c.Stuck = 1 }

// unpublishes has a volume's unpublish take a machine's access away: then time alone takes nothing.
func unpublishes(c *Config) { c.Unpublishes, c.Strict = true, ByTime }

// leases has Leases read, and renewed once while the node is not Ready.
func leases(c *Config) { c.Leases, c.Renewals = true, 1 }

// vanishing is a volume of one pod whose PersistentVolume vanishes, and that another pod will use under its
// other name.
func vanishing(leaders int) Config {
	return bad(func(c *Config) { c.Leaders, c.Vanished, c.Again = leaders, 1, []bool{false, true} })
}
