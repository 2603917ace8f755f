// SPDX-License-Identifier: Apache-2.0

package explore

// Bad are worlds as bad as real clusters, in which no rule is broken: what a
// kubelet that starts anew drops, and what it says while it can't do its work.
func Bad() []World {
	return []World{
		{"a stuck unmount, a restart, two leaders", bad(func(c *Config) { c.Stuck, c.Restarts, c.Leaders = 1, 1, 2 })},
		{"not ready", bad(func(c *Config) { c.Broken = 1 })},
		{"not ready, two leaders", bad(func(c *Config) { c.Broken, c.Leaders = 1, 2 })},
		{"not ready, a restart", bad(func(c *Config) { c.Broken, c.Restarts = 1, 1 })},
		{"not ready, forced by time", bad(func(c *Config) { c.Broken, c.Impatient = 1, true })},
		{"a Node made again", bad(func(c *Config) { c.Remade = 1 })},
		{"a Node made again, a stuck unmount", bad(func(c *Config) { c.Remade, c.Stuck = 1, 1 })},
		{"a vanished PersistentVolume", vanishing(1)},
		{"a vanished PersistentVolume, two leaders", vanishing(2)},
	}
}

// Open are worlds in which rules are broken today, or that were not searched to their
// ends: what docs/internals/simulation.md lists. One that is clean to its end belongs to Bad.
func Open() []World {
	return []World{
		{"a Node made again, two leaders", bad(func(c *Config) { c.Remade, c.Leaders = 1, 2 })},
		{"a silence, forced by time", bad(func(c *Config) { c.Silences, c.Impatient = 1, true })},
		{"a silence, forced by time, two leaders", bad(func(c *Config) { c.Silences, c.Impatient, c.Leaders = 1, true, 2 })},
		{"a silence, a stuck unmount, forced by time", bad(func(c *Config) { c.Silences, c.Stuck, c.Impatient = 1, 1, true })},
	}
}

// Residual are worlds in which rules are broken, whatever a controller does: no
// fact in the API shows what happens there. Each must be found to be broken.
func Residual() []World {
	return []World{
		{"a kubelet killed between NodeUnpublish and NodeUnstage", bad(func(c *Config) { c.Restarts, c.Forgetful = 1, true })},
		{"a machine that lives, forced by time alone", bad(func(c *Config) { c.Broken, c.Impatient, c.Strict = 1, true, ByTime })},
		{"a node that is Ready again before its forced deletion", bad(func(c *Config) { c.Broken, c.Impatient, c.Strict = 1, true, Overtaken })},
		{"a disk that comes back before its hold is deleted", forgotten()},
	}
}

// bad is a handover under one leader, with something bad besides.
func bad(change func(*Config)) Config {
	c := Handover()
	c.Leaders = 1
	change(&c)
	return c
}

// forgotten is such a volume whose disk comes back between a list and the deletion of its
// hold that was sent on it.
func forgotten() Config {
	c := vanishing(1)
	c.Strict = Forgotten
	return c
}

// vanishing is a volume that one pod uses, whose PersistentVolume vanishes, and that
// another pod is to use under its other name.
func vanishing(leaders int) Config {
	return bad(func(c *Config) { c.Leaders, c.Vanished, c.Again = leaders, 1, []bool{false, true} })
}
