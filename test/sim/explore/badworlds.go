// SPDX-License-Identifier: Apache-2.0

package explore

import "github.com/moorage-dev/moorage/internal/ledger"

// Bad has worlds with real clusters' faults in which no rule is broken.
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

// Residual has worlds in which faults without a fact in the API break rules under any controller.
// internal/rules/testdata/residual has the others.
func Residual() []World {
	return []World{
		{"a kubelet killed between NodeUnpublish and NodeUnstage", bad(func(c *Config) { c.Restarts, c.Forgetful = 1, true })},
		{"a machine that lives, forced by time alone", silence(1, func(c *Config) { c.Strict = ByTime })},
		{"a node that is Ready again before its forced deletion", silence(1, func(c *Config) { c.Strict = Overtaken })},
	}
}

func bad(change func(*Config)) Config {
	c := Handover()
	c.Leaders = 1
	change(&c)
	return c
}

func spoken(change func(*Config)) Config {
	return bad(func(c *Config) {
		c.Restarts, c.Forgetful, c.Agents, c.RequireWord = 1, true, true, true
		change(c)
	})
}

func rebooted(change func(*Config)) Config {
	return spoken(func(c *Config) {
		c.Restarts, c.Reboots = 0, 1
		change(c)
	})
}

func remade(change func(*Config)) Config {
	return bad(func(c *Config) {
		c.Remade, c.Agents = 1, true
		change(c)
	})
}

func shared(change func(*Config)) Config {
	return bad(func(c *Config) {
		c.Pods, c.Placed, c.Foreign, c.Deletable = [][]int{{1}}, []int{1}, []bool{false}, []bool{true}
		c.Access = []ledger.Access{ledger.AccessMany}
		change(c)
	})
}

func silence(leaders int, change func(*Config)) Config {
	return bad(func(c *Config) {
		c.Leaders, c.Silences, c.Impatient = leaders, 1, true
		change(c)
	})
}

func fences(leaders int, change func(*Config)) Config {
	return bad(func(c *Config) {
		c.Leaders, c.DeadNodes, c.Fences, c.Leases, c.Renewals = leaders, 1, true, true, 1
		change(c)
	})
}

func cutsOff(leaders int, change func(*Config)) Config {
	return bad(func(c *Config) {
		c.Leaders, c.Silences, c.CutsOff, c.Agents = leaders, 1, true, true
		change(c)
	})
}

func stuck(c *Config) { c.Stuck = 1 }

// Unpublishing takes a machine's access away: time alone takes nothing.
func unpublishes(c *Config) { c.Unpublishes, c.Strict = true, ByTime }

func leases(c *Config) { c.Leases, c.Renewals = true, 1 }

func vanishing(leaders int) Config {
	return bad(func(c *Config) { c.Leaders, c.Vanished, c.Again = leaders, 1, []bool{false, true} })
}
