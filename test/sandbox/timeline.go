// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Timeline tells when the pods of a namespace reached each stage. Its methods
// are safe for parallel use.
type Timeline struct {
	view *View
	// namespace is asked for late: a scenario gets its own after this is made.
	namespace func() string
}

// Timeline returns the timeline of a namespace's pods, of all if it is empty.
func (v *View) Timeline(namespace string) *Timeline {
	return &Timeline{view: v, namespace: func() string { return namespace }}
}

// PodTimes is the path of one pod and one of its volumes.
type PodTimes struct {
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
	UID       types.UID `json:"uid"`
	Node      string    `json:"node"`
	// Volume is the handle; empty for a pod without volumes of the driver.
	Volume string `json:"volume,omitempty"`
	// At has the stages that were seen.
	At map[Stage]time.Time `json:"at"`
}

// Between is the time from one stage to another; false if one is missing. It is
// negative where the second came first.
func (p PodTimes) Between(from, to Stage) (time.Duration, bool) {
	a, okA := p.At[from]
	b, okB := p.At[to]
	return b.Sub(a), okA && okB
}

// Pods returns the path of each pod that was seen, by creation, with one entry
// per volume of the driver. Pods that are gone are included.
func (t *Timeline) Pods() []PodTimes {
	facts := t.view.recorder.snapshot()
	own := map[types.UID]map[Stage]time.Time{}
	byVolume := map[[2]string][]fact{}
	for _, f := range facts {
		if f.pod == "" {
			key := [2]string{f.volume, f.node}
			byVolume[key] = append(byVolume[key], f)
			continue
		}
		if own[f.pod] == nil {
			own[f.pod] = map[Stage]time.Time{}
		}
		if _, seen := own[f.pod][f.stage]; !seen {
			own[f.pod][f.stage] = f.at
		}
	}
	var out []PodTimes
	for _, pod := range t.view.podsEver(t.namespace()) {
		volumes := pod.volumes
		if len(volumes) == 0 {
			volumes = []seenVolume{{}}
		}
		for _, volume := range volumes {
			p := PodTimes{
				Namespace: pod.namespace, Pod: pod.name, UID: pod.uid, Node: pod.node, Volume: volume.handle,
				At: map[Stage]time.Time{},
			}
			for stage, at := range own[pod.uid] {
				p.At[stage] = at
			}
			if volume.handle != "" && pod.node != "" {
				p.addVolume(slices.Concat(byVolume[[2]string{volume.handle, pod.node}], byVolume[[2]string{volume.name, pod.node}]))
			}
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b PodTimes) int {
		return cmp.Or(a.At[Created].Compare(b.At[Created]), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Volume, b.Volume))
	})
	return out
}

// addVolume picks, of everything that happened to the volume at the node, what
// belongs to this pod: on the way up the last time between its creation and its
// running (nothing, if it found the volume attached), on the way down the first
// time after it was deleted.
func (p *PodTimes) addVolume(facts []fact) {
	created := p.At[Created]
	running, isRunning := p.At[Running]
	deleted, isDeleted := p.At[Deleted]
	up, down := upStages(), downStages()
	for _, f := range facts {
		before, seen := p.At[f.stage]
		switch {
		case slices.Contains(up, f.stage):
			if f.at.Before(created) || isRunning && f.at.After(running) || isDeleted && f.at.After(deleted) {
				continue
			}
			if !seen || f.at.After(before) {
				p.At[f.stage] = f.at
			}
		case slices.Contains(down, f.stage):
			if !isDeleted || f.at.Before(deleted) {
				continue
			}
			if !seen || f.at.Before(before) {
				p.At[f.stage] = f.at
			}
		}
	}
}

// Print writes a table per pod: each stage with the time since the pod's
// creation and since the stage before it.
func (t *Timeline) Print(w io.Writer) {
	for _, p := range t.Pods() {
		p.Print(w)
	}
}

// Print writes the stages of one pod in the order in which they were seen.
func (p PodTimes) Print(w io.Writer) {
	fmt.Fprintf(w, "%s/%s on %s, volume %s\n", p.Namespace, p.Pod, cmp.Or(p.Node, "no node"), cmp.Or(p.Volume, "none"))
	type row struct {
		stage Stage
		at    time.Time
	}
	var rows []row
	for _, stage := range slices.Concat(upStages(), downStages()) {
		if at, ok := p.At[stage]; ok {
			rows = append(rows, row{stage, at})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int { return a.at.Compare(b.at) })
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	var last time.Time
	for i, r := range rows {
		step := ""
		if i > 0 {
			step = "+" + millis(r.at.Sub(last))
		}
		fmt.Fprintf(table, "%s\t%s\t  %s\n", millis(r.at.Sub(p.At[Created])), step, "\t"+pad(string(r.stage)))
		last = r.at
	}
	_ = table.Flush() // w is a buffer or a terminal
}

func millis(d time.Duration) string { return fmt.Sprintf("%.3f s", d.Seconds()) }

// pad makes right-aligned cells of stages start in one column.
func pad(s string) string { return s + strings.Repeat(" ", max(0, 22-len(s))) }
