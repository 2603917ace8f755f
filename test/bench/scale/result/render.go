// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/bench/internal/table"
)

func Page() record.Page { return record.Page{Command: "moorage-sandbox bench-scale --render"} }

// Render shows several runs as median, smallest and largest.
func Render(r Result) string {
	var out strings.Builder
	out.WriteString(r.Measured() + ".\n")
	for _, load := range loads(r.Runs) {
		fmt.Fprintf(&out, "\n### %s\n\n", load)
		runs := slices.DeleteFunc(slices.Clone(r.Runs), func(run Run) bool { return run.Load != load })
		out.WriteString(tableOf(runs))
		out.WriteString(failures(runs))
		out.WriteString(writesOf(runs))
	}
	return strings.TrimRight(out.String(), "\n") + "\n"
}

const none = "No result is kept yet.\n"

// RenderFolder reads the files scale*.json, in the order of their names.
func RenderFolder(folder string) (string, error) {
	names, err := filepath.Glob(filepath.Join(folder, "scale*.json"))
	if err != nil || len(names) == 0 {
		return none, err
	}
	texts := make([]string, len(names))
	for i, name := range names {
		r, err := Read(name)
		if err != nil {
			return "", err
		}
		texts[i] = Render(r)
	}
	return strings.Join(texts, "\n"), nil
}

func (l Load) String() string {
	text := fmt.Sprintf("%d nodes, %d volumes of %d pods, attach and detach %g s, status interval %g s, %s",
		l.Nodes, l.Volumes, l.Pods, l.LatencySeconds, l.StatusSeconds, l.Attacher)
	return text
}

func loads(runs []Run) []Load {
	var out []Load
	for _, run := range runs {
		if !slices.Contains(out, run.Load) {
			out = append(out, run.Load)
		}
	}
	return out
}

func modes(runs []Run) []string {
	var out []string
	for _, run := range runs {
		if !slices.Contains(out, run.Mode) {
			out = append(out, run.Mode)
		}
	}
	slices.Sort(out)
	return out
}

// A value is false if the run has none.
type row struct {
	name, unit string
	of         func(Run) (float64, bool)
}

func tableOf(runs []Run) string {
	var t table.Table
	names := modes(runs)
	head := append([]string{""}, names...)
	if len(names) == 2 {
		head = append(head, names[0]+" : "+names[1])
	}
	t.Add(head...)
	for _, line := range rows() {
		cells, medians := []string{line.name}, []float64{}
		for _, mode := range names {
			var values []float64
			for _, run := range runs {
				if v, ok := line.of(run); ok && run.Mode == mode {
					values = append(values, v)
				}
			}
			cells = append(cells, spread(values, line.unit))
			if len(values) > 0 {
				medians = append(medians, median(values))
			}
		}
		if len(names) == 2 {
			cells = append(cells, ratio(medians))
		}
		t.Add(cells...)
	}
	return t.String()
}

// Empty where a value is missing or zero.
func ratio(medians []float64) string {
	if len(medians) != 2 || medians[0] <= 0 || medians[1] <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", medians[0]/medians[1])
}

func spread(values []float64, unit string) string {
	if len(values) == 0 {
		return "–"
	}
	text := number(median(values)) + unit
	if len(values) > 1 {
		text += fmt.Sprintf(" (%s–%s)", number(slices.Min(values)), number(slices.Max(values)))
	}
	return text
}

func number(v float64) string {
	switch {
	case v == float64(int64(v)):
		return fmt.Sprintf("%d", int64(v))
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func median(values []float64) float64 { return percentile(values, 50) }

// 0 without any
func percentile(values []float64, p int) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}

func failures(runs []Run) string {
	var out strings.Builder
	for _, run := range runs {
		if run.Failed != "" {
			fmt.Fprintf(&out, "\n**A run of %s failed**: %s\n", run.Mode, strings.ReplaceAll(run.Failed, "\n", " "))
		}
	}
	return out.String()
}

func writesOf(runs []Run) string {
	type kind struct{ user, what string }
	counts, seen := map[kind]map[string]float64{}, map[string]float64{}
	for _, run := range runs {
		if run.Storm == nil || run.Storm.Volumes == 0 {
			continue
		}
		seen[run.Mode]++
		for _, w := range run.Storm.Writes.All {
			k := kind{w.User, w.Verb + " " + w.Resource}
			if counts[k] == nil {
				counts[k] = map[string]float64{}
			}
			counts[k][run.Mode] += float64(w.Count) / float64(run.Storm.Volumes)
		}
	}
	if len(counts) == 0 {
		return ""
	}
	var kinds []kind
	for k := range counts {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b kind) int { return cmp.Or(cmp.Compare(a.user, b.user), cmp.Compare(a.what, b.what)) })
	t := table.Table{Left: map[int]bool{1: true}}
	t.Add(append([]string{"who", "write"}, modes(runs)...)...)
	for _, k := range kinds {
		cells, shown := []string{k.user, k.what}, false
		for _, mode := range modes(runs) {
			text := "–"
			if n := counts[k][mode]; n > 0 {
				text = fmt.Sprintf("%.2f", n/seen[mode])
				shown = shown || n/seen[mode] >= 0.005
			}
			cells = append(cells, text)
		}
		if shown {
			t.Add(cells...)
		}
	}
	return "\n<details><summary>API writes in the storm, per volume</summary>\n\n" + t.String() + "\n</details>\n"
}
