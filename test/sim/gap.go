// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"github.com/moorage-dev/moorage/test/world"
)

// relist takes a kind in as it is now, as an informer does whose watch had a gap: what was made and deleted meanwhile is
// not shown, what was made again comes in the place of the one before, and deletions come last.
func (o *observer) relist(k world.Kind) {
	log := o.s.logs[k]
	last := map[string]world.Change{}
	var keys []string
	for _, c := range log[o.at[k]:] {
		if _, seen := last[c.Key]; !seen {
			keys = append(keys, c.Key)
		}
		last[c.Key] = c
		o.handled[k] = max(o.handled[k], c.Version)
	}
	o.at[k] = len(log)
	for _, key := range keys {
		if c := last[key]; c.Fact != nil {
			o.deliver(c)
		}
	}
	for _, key := range keys {
		if c := last[key]; c.Fact == nil && o.store[k][key] != nil {
			c.Old = o.store[k][key]
			o.deliver(c)
		}
	}
}

// vanished are the objects of a kind that answers showed, and that went in a gap of the watch: it never shows them.
func (o *observer) vanished(k world.Kind) (keys []string) {
	for key, e := range o.ahead[k] {
		if o.store[k][key] == nil && world.VersionOf(e) <= o.handled[k] {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// sweepVanished takes in that those have gone, as a feed of internal/observe does; without the time that it waits before.
func (o *observer) sweepVanished(k world.Kind) bool {
	keys := o.vanished(k)
	for _, key := range keys {
		old := o.ahead[k][key]
		delete(o.ahead[k], key)
		o.gone(old)
	}
	return len(keys) > 0
}
