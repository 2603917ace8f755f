// SPDX-License-Identifier: Apache-2.0

package view

import (
	"reflect"
	"time"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// Delta leads from one view to a later one.
type Delta struct {
	Taken time.Time `json:"taken"`
	// Nodes, Volumes and Waits are those that are new or differ; Gone names those that
	// are no more.
	Nodes   []Node   `json:"nodes,omitempty"`
	Volumes []Volume `json:"volumes,omitempty"`
	Waits   []Wait   `json:"waits,omitempty"`
	Gone    Gone     `json:"gone,omitzero"`
	// Links and Unseen are whole; nil where they are as they were.
	Links  *[]Link         `json:"links,omitempty"`
	Unseen *[]facts.Unseen `json:"unseen,omitempty"`
}

// Gone names what is no more.
type Gone struct {
	Nodes   []string `json:"nodes,omitempty"`
	Volumes []string `json:"volumes,omitempty"`
	Waits   []string `json:"waits,omitempty"`
}

// Diff is what leads from one view to another.
func Diff(from, to *View) Delta {
	d := Delta{Taken: to.Taken}
	d.Nodes, d.Gone.Nodes = diff(from.Nodes, to.Nodes, nodeName)
	d.Volumes, d.Gone.Volumes = diff(from.Volumes, to.Volumes, volumeKey)
	d.Waits, d.Gone.Waits = diff(from.Waits, to.Waits, waitRef)
	if !reflect.DeepEqual(from.Links, to.Links) {
		d.Links = &to.Links
	}
	if !reflect.DeepEqual(from.Unseen, to.Unseen) {
		d.Unseen = &to.Unseen
	}
	return d
}

// Apply is the view that a delta leads to.
func (v *View) Apply(d Delta) *View {
	out := &View{
		Taken: d.Taken, Links: v.Links, Unseen: v.Unseen,
		Nodes:   apply(v.Nodes, d.Nodes, d.Gone.Nodes, nodeName),
		Volumes: apply(v.Volumes, d.Volumes, d.Gone.Volumes, volumeKey),
		Waits:   apply(v.Waits, d.Waits, d.Gone.Waits, waitRef),
	}
	if d.Links != nil {
		out.Links = *d.Links
	}
	if d.Unseen != nil {
		out.Unseen = *d.Unseen
	}
	out.sort()
	return out
}

func nodeName(n *Node) string    { return n.Name }
func volumeKey(v *Volume) string { return v.Key }
func waitRef(w *Wait) string     { return w.Ref }

func diff[T any](from, to []T, name func(*T) string) (changed []T, gone []string) {
	was := make(map[string]*T, len(from))
	for i := range from {
		was[name(&from[i])] = &from[i]
	}
	for i := range to {
		n := name(&to[i])
		if old := was[n]; old == nil || !reflect.DeepEqual(old, &to[i]) {
			changed = append(changed, to[i])
		}
		delete(was, n)
	}
	for i := range from {
		if n := name(&from[i]); was[n] != nil {
			gone = append(gone, n)
		}
	}
	return changed, gone
}

func apply[T any](was, changed []T, gone []string, name func(*T) string) []T {
	drop := map[string]bool{}
	for _, n := range gone {
		drop[n] = true
	}
	for i := range changed {
		drop[name(&changed[i])] = true
	}
	out := []T{}
	for i := range was {
		if !drop[name(&was[i])] {
			out = append(out, was[i])
		}
	}
	return append(out, changed...)
}
