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

// Timeline's methods are safe for parallel use.
type Timeline struct {
	view      *View
	namespace func() string
}

func (v *View) Timeline(namespace string) *Timeline {
	return &Timeline{view: v, namespace: func() string { return namespace }}
}

type PodTimes struct {
	Namespace string              `json:"namespace"`
	Pod       string              `json:"pod"`
	UID       types.UID           `json:"uid"`
	Node      string              `json:"node"`
	Volume    string              `json:"volume,omitempty"`
	At        map[Stage]time.Time `json:"at"`
}

// Between is false if a stage is missing, and negative if to came first.
func (p PodTimes) Between(from, to Stage) (time.Duration, bool) {
	a, okA := p.At[from]
	b, okB := p.At[to]
	return b.Sub(a), okA && okB
}

// Pods returns one entry per volume of each pod, also of gone pods.
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

// On the way up, the volume's last time between the pod's creation and its running counts; on the way down,
// the first time after its deletion.
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

func (t *Timeline) Print(w io.Writer) {
	for _, p := range t.Pods() {
		p.Print(w)
	}
}

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

func pad(s string) string { return s + strings.Repeat(" ", max(0, 22-len(s))) }
