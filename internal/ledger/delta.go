// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"maps"
	"slices"
)

// Delta is a dry run's tried and preempted pods; zero: none. It is not safe for parallel use during
// changes.
type Delta struct {
	Added   map[string]NodeName // UID of a tried pod -> node
	Removed map[string]bool     // UIDs of pods
	Granted TicketID            // taken as granted
}

// Add tries a pod at a node, or brings a removed pod back, as kube-scheduler's preemption does.
func (d *Delta) Add(uid string, n NodeName) {
	if d.Removed[uid] {
		delete(d.Removed, uid)
		return
	}
	if d.Added == nil {
		d.Added = map[string]NodeName{}
	}
	d.Added[uid] = n
}

// Remove takes a pod away, or ends its try.
func (d *Delta) Remove(uid string) {
	if _, tried := d.Added[uid]; tried {
		delete(d.Added, uid)
		return
	}
	if d.Removed == nil {
		d.Removed = map[string]bool{}
	}
	d.Removed[uid] = true
}

// AddedPods are the tried pods' UIDs, sorted.
func (d *Delta) AddedPods() []string { return slices.Sorted(maps.Keys(d.Added)) }

// Clone returns an independent copy.
func (d *Delta) Clone() *Delta {
	if d == nil {
		return nil
	}
	return &Delta{Added: maps.Clone(d.Added), Removed: maps.Clone(d.Removed), Granted: d.Granted}
}

// Empty says whether d changes nothing.
func (d *Delta) Empty() bool {
	return d == nil || len(d.Added) == 0 && len(d.Removed) == 0 && d.Granted == TicketID{}
}
