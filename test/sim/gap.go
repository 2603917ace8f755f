// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"github.com/moorage-dev/moorage/test/world"
)

// Short-lived objects are not shown, a recreated object replaces its predecessor, and deletions come last.
func (o *observer) relist(k world.Kind) {
	changes := newest(o.s.logs[k][o.at[k]:])
	o.at[k] = len(o.s.logs[k])
	for _, c := range changes {
		o.handled[k] = max(o.handled[k], c.Version)
		if c.Fact != nil {
			o.deliver(c)
		}
	}
	for _, c := range changes {
		if old := o.store[k][c.Key]; c.Fact == nil && old != nil {
			c.Old = old
			o.deliver(c)
		}
	}
}

// vanished objects ended in a watch gap: the watch never shows them.
func (o *observer) vanished(k world.Kind) (keys []string) {
	for key, e := range o.ahead[k] {
		if o.store[k][key] == nil && world.VersionOf(e) <= o.handled[k] {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (o *observer) sweepVanished(k world.Kind) bool {
	keys := o.vanished(k)
	for _, key := range keys {
		old := o.ahead[k][key]
		delete(o.ahead[k], key)
		o.apply(world.Gone(old))
	}
	return len(keys) > 0
}
