// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/bench/internal/table"
)

const nothing = "–"

func Page() record.Page { return record.Page{Command: "moorage-sandbox bench-attach --render"} }

func Render(r Result) string {
	rows := r.rows()
	var out strings.Builder
	for i, s := range r.Sessions {
		if !slices.ContainsFunc(rows, func(row row) bool { return row.session == i }) {
			continue
		}
		fmt.Fprintf(&out, "%s: %s.\n\n", mark(i), s.Measured())
	}
	for _, half := range []struct {
		name string
		of   func(Run) *Half
	}{
		{"Attach", func(r Run) *Half { return r.Attach }},
		{"Detach", func(r Run) *Half { return r.Detach }},
		{"Attach once more", func(r Run) *Half { return r.Again }},
	} {
		if slices.ContainsFunc(rows, func(r row) bool { return half.of(r.Run) != nil }) {
			fmt.Fprintf(&out, "### %s\n%s\n", half.name, speed(rows, half.of))
		}
	}
	fmt.Fprintf(&out, "### CPU seconds of the attach\n%s\n", cost(rows, func(r Run) map[string]float64 {
		if r.Attach == nil {
			return nil
		}
		return r.Attach.CPUSeconds
	}, "%.2f"))
	fmt.Fprintf(&out, "### Peak memory in MiB\n%s", cost(rows, func(r Run) map[string]float64 { return r.PeakMiB }, "%.0f"))
	for _, s := range r.Sessions {
		for _, run := range s.Runs {
			if run.Failed != "" {
				fmt.Fprintf(&out, "\n%s, %s failed: %s\n", run.Load(), run.Setup, run.Failed)
			}
		}
	}
	return out.String()
}

func mark(session int) string { return string(rune('A' + session)) }

type row struct {
	Run
	runs, session int
	best, worst   float64
}

func (r Result) rows() []row {
	var list []row
	for session, s := range r.Sessions {
		for _, c := range cases(s.Runs) {
			made := summary(c, s.Runs, session)
			if i := slices.IndexFunc(list, func(other row) bool { return other.Case == c }); i >= 0 {
				list[i] = made
			} else {
				list = append(list, made)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Volumes, b.Volumes), cmp.Compare(a.LatencySeconds, b.LatencySeconds),
			cmp.Compare(a.Parallel, b.Parallel), cmp.Compare(order(a.Setup), order(b.Setup)))
	})
	return list
}

func order(setup string) int {
	return slices.Index([]string{"upstream", "upstream-tuned", "moorage"}, setup)
}

func cases(runs []Run) []Case {
	var list []Case
	for _, run := range runs {
		if run.Failed == "" && run.Attach != nil && !slices.Contains(list, run.Case) {
			list = append(list, run.Case)
		}
	}
	return list
}

func summary(c Case, runs []Run, session int) row {
	runs = slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return r.Case != c || r.Failed != "" || r.Attach == nil })
	slices.SortStableFunc(runs, func(a, b Run) int { return cmp.Compare(a.Attach.SettledSeconds, b.Attach.SettledSeconds) })
	return row{
		Run: runs[len(runs)/2], runs: len(runs), session: session,
		best: runs[0].Attach.SettledSeconds, worst: runs[len(runs)-1].Attach.SettledSeconds,
	}
}

func (c Case) Load() string {
	text := fmt.Sprintf("%d volumes, driver %g s", c.Volumes, c.LatencySeconds)
	if c.Parallel > 0 {
		text += fmt.Sprintf(", %d at a time", c.Parallel)
	}
	return text
}

func speed(rows []row, of func(Run) *Half) *table.Table {
	var t table.Table
	t.Left = map[int]bool{1: true}
	t.Add("load", "attacher", "done", "last asked for", "last call begun", "last call answered", "all in the API", "driver's limit", "times the limit",
		"per second", "writes per volume", "calls per volume", "runs")
	for _, r := range rows {
		half := of(r.Run)
		if half == nil || half.Done == 0 {
			continue
		}
		n := float64(half.Done)
		limit, times := nothing, nothing
		if s := r.LimitSeconds(); s > 0 {
			limit = seconds(s)
			if half.Done == r.Volumes {
				times = fmt.Sprintf("%.2f", half.SettledSeconds/s)
			}
		}
		t.Add(r.Load(), r.Setup, fmt.Sprintf("%d of %d", half.Done, r.Volumes), moment(half.AskedSeconds), moment(half.BegunSeconds), seconds(half.CalledSeconds),
			seconds(half.SettledSeconds), limit, times, fmt.Sprintf("%.1f", n/half.SettledSeconds), each(half.Writes, n), each(half.Calls, n), r.spread())
	}
	return &t
}

func (r row) spread() string {
	if r.runs == 1 {
		return "1 " + mark(r.session)
	}
	return fmt.Sprintf("%d %s: %.1f–%.1f s", r.runs, mark(r.session), r.best, r.worst)
}

func cost(rows []row, of func(Run) map[string]float64, format string) *table.Table {
	processes := []string{"csi-attacher", "kube-apiserver", "etcd", "kube-controller-manager", "disk-service"}
	var t table.Table
	t.Left = map[int]bool{1: true}
	t.Add(append([]string{"load", "attacher"}, processes...)...)
	for _, r := range rows {
		line := []string{r.Load(), r.Setup}
		for _, name := range processes {
			line = append(line, fmt.Sprintf(format, of(r.Run)[name]))
		}
		t.Add(line...)
	}
	return &t
}

func moment(s float64) string {
	if s == 0 {
		return nothing
	}
	return seconds(s)
}

func seconds(s float64) string { return fmt.Sprintf("%.1f s", s) }

func each(counts map[string]int, volumes float64) string {
	sum := 0
	for _, n := range slices.Collect(maps.Values(counts)) {
		sum += n
	}
	return fmt.Sprintf("%.2f", float64(sum)/volumes)
}
