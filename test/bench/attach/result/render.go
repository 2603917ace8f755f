// SPDX-License-Identifier: Apache-2.0

package result

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/test/bench/internal/table"
)

// The results stand between these two lines of the document.
const (
	begin = "<!-- results: begin; written by `moorage-sandbox bench-attach --render`, not by hand -->\n"
	end   = "<!-- results: end -->\n"
)

// nothing stands where nothing was measured.
const nothing = "–"

// Within returns a document with its results replaced.
func Within(text string, r Result) (string, error) {
	before, rest, okBegin := strings.Cut(text, begin)
	_, after, okEnd := strings.Cut(rest, end)
	if !okBegin || !okEnd {
		return "", fmt.Errorf("the results belong between the lines %q and %q, which are missing", begin, end)
	}
	return before + begin + "\n" + Render(r) + "\n" + end + after, nil
}

// Render writes a result as Markdown.
func Render(r Result) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Measured by `%s` on %s: %s; %s.\n", r.Command, r.Started.Format("2 January 2006"), r.Source, r.Machine)
	for _, half := range []struct {
		name string
		of   func(Run) *Half
	}{
		{"Attach", func(r Run) *Half { return r.Attach }},
		{"Detach", func(r Run) *Half { return r.Detach }},
	} {
		fmt.Fprintf(&out, "\n### %s\n", half.name)
		out.WriteString(speed(r, half.of).String())
	}
	out.WriteString("\n### CPU seconds of the attach, and peak memory of the attacher\n")
	out.WriteString(cost(r).String())
	for _, run := range r.Runs {
		if run.Failed != "" {
			fmt.Fprintf(&out, "\n%s, %s failed: %s\n", run.load(), run.Setup, run.Failed)
		}
	}
	return out.String()
}

// load names what a run was asked to do.
func (r Run) load() string {
	return fmt.Sprintf("%d volumes, driver %g s", r.Volumes, r.LatencySeconds)
}

func speed(r Result, of func(Run) *Half) *table.Table {
	var t table.Table
	t.Left = map[int]bool{1: true}
	t.Add("load", "attacher", "done", "last call answered", "last one in the API", "per second", "writes per volume", "calls per volume")
	for _, run := range r.Runs {
		half := of(run)
		if half == nil || half.Done == 0 {
			t.Add(run.load(), run.Setup, nothing, nothing, nothing, nothing, nothing, nothing)
			continue
		}
		n := float64(half.Done)
		t.Add(run.load(), run.Setup, fmt.Sprintf("%d of %d", half.Done, run.Volumes), seconds(half.CalledSeconds), seconds(half.SettledSeconds),
			fmt.Sprintf("%.1f", n/half.SettledSeconds), each(half.Writes, n), each(half.Calls, n))
	}
	return &t
}

func cost(r Result) *table.Table {
	processes := []string{"csi-attacher", "kube-apiserver", "etcd", "kube-controller-manager", "disk-service"}
	var t table.Table
	t.Left = map[int]bool{1: true}
	t.Add(append(append([]string{"load", "attacher"}, processes...), "attacher's memory")...)
	for _, run := range r.Runs {
		row := []string{run.load(), run.Setup}
		for _, name := range processes {
			if run.Attach == nil {
				row = append(row, nothing)
				continue
			}
			row = append(row, fmt.Sprintf("%.2f", run.Attach.CPUSeconds[name]))
		}
		t.Add(append(row, fmt.Sprintf("%.0f MiB", run.PeakMiB["csi-attacher"]))...)
	}
	return &t
}

func seconds(s float64) string { return fmt.Sprintf("%.1f s", s) }

// each is a sum per volume.
func each(counts map[string]int, volumes float64) string {
	sum := 0
	for _, n := range slices.Collect(maps.Values(counts)) {
		sum += n
	}
	return fmt.Sprintf("%.2f", float64(sum)/volumes)
}
