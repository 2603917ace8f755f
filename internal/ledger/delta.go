// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"maps"
	"slices"
)

// Delta is what a dry run adds to and takes from the facts: pods that are
// tried at a node, and pods that would be preempted. The zero value changes
// nothing. It is not safe for parallel use while it is being changed.
type Delta struct {
	Added   map[string]NodeName // UID of a pod -> where it is tried
	Removed map[string]bool     // UIDs of pods
	Granted TicketID            // a ticket taken as granted
}

// Add tries a pod at a node. A pod that Remove took away is back as before (kube-scheduler's preemption
// takes all victims away, and puts some back).
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

// Remove takes a pod away. A pod that was only tried is no longer tried.
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

// AddedPods are the UIDs of the tried pods, sorted.
func (d *Delta) AddedPods() []string { return slices.Sorted(maps.Keys(d.Added)) }

// Clone returns a copy that can be changed without changing d.
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
