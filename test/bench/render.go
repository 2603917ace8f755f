// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/test/bench/internal/table"
)

const nothing = "–"

func Render(r Result) string {
	return render(r, func(title, body string) string { return "\n" + title + ":\n\n" + body })
}

func renderFolded(r Result) string {
	return render(r, func(title, body string) string {
		return "\n<details><summary>" + title + "</summary>\n\n" + body + "\n</details>\n"
	})
}

func render(r Result, fold func(title, body string) string) string {
	var out strings.Builder
	fmt.Fprintf(&out, "Measured by `%s` on %s: %s; %s; Kubernetes %s.\n",
		r.Command, r.Started.Format("2 January 2006"), r.Source, r.Machine, strings.Join(r.kubernetes(), ", "))
	if failures := r.Failures(); len(failures) > 0 {
		fmt.Fprintf(&out, "\n**%d of %d runs failed** and are left out of all numbers:\n", len(failures), len(r.Runs))
		for _, failure := range failures {
			fmt.Fprintf(&out, "- %s\n", oneLine(failure.Error()))
		}
	}
	if len(r.Cases()) > 1 {
		for _, m := range Metrics() {
			if m.Headline {
				fmt.Fprintf(&out, "\n### %s, p50\n\n%s", m.Title, overview(r, m))
			}
		}
	}
	for _, c := range r.Cases() {
		fmt.Fprintf(&out, "\n### %s\n\n", c.Title())
		if cells := cells(r, c); slices.ContainsFunc(cells, cell.measured) {
			out.WriteString(timesTable(cells))
			out.WriteString(fold("API writes per pod, attach", writesTable(cells, func(c cell) []Write { return c.attach })))
			out.WriteString(fold("API writes per pod, detach", writesTable(cells, func(c cell) []Write { return c.detach })))
			out.WriteString(fold("CPU seconds per run", cpuTable(cells)))
		} else {
			out.WriteString("Every run failed.\n")
		}
	}
	return out.String()
}

func overview(r Result, m Metric) string {
	var t table.Table
	setups := r.Setups()
	head := []string{"case"}
	for _, setup := range setups {
		head = append(head, string(setup))
	}
	for _, p := range pairs() {
		if slices.Contains(setups, p.ours) && slices.Contains(setups, p.theirs) {
			head = append(head, string(p.ours)+" : "+string(p.theirs))
		}
	}
	t.Add(head...)
	for _, c := range r.Cases() {
		row := []string{c.Name()}
		cells := allCells(r, c)
		for _, one := range cells {
			row = append(row, percentileOf(one, m.Key, 50))
		}
		t.Add(append(row, ratios(cells, func(c cell) (float64, bool) { return c.p50(m.Key) })...)...)
	}
	return t.String()
}

func (r Result) kubernetes() []string {
	versions := map[string]bool{}
	for _, run := range r.Runs {
		if run.Kubernetes != "" {
			versions[run.Kubernetes] = true
		}
	}
	return slices.Sorted(maps.Keys(versions))
}

func timesTable(cells []cell) string {
	var t table.Table
	head := []string{""}
	for _, c := range cells {
		head = append(head, string(c.setup)+" p50", "p99")
	}
	for _, d := range duels(cells) {
		head = append(head, fmt.Sprintf("%s : %s", d.ours.setup, d.theirs.setup))
	}
	t.Add(head...)
	for _, m := range Metrics() {
		row := []string{m.Title}
		for _, c := range cells {
			row = append(row, percentileOf(c, m.Key, 50), percentileOf(c, m.Key, 99))
		}
		t.Add(append(row, ratios(cells, func(c cell) (float64, bool) { return c.p50(m.Key) })...)...)
	}
	addSingle(&t, "all Running after", cells, func(c cell) float64 { return c.allRunning }, formatMillis)
	addSingle(&t, "all detached after", cells, func(c cell) float64 { return c.allDetached }, formatMillis)
	count := func(n float64) string { return fmt.Sprintf("%.1f", n) }
	addSingle(&t, "API writes per pod, attach", cells, func(c cell) float64 { return c.perPod(total(c.attach)) }, count)
	addSingle(&t, "API writes per pod, detach", cells, func(c cell) float64 { return c.perPod(total(c.detach)) }, count)
	return t.String()
}

func addSingle(t *table.Table, title string, cells []cell, value func(cell) float64, format func(float64) string) {
	row := []string{title}
	for _, c := range cells {
		text := "failed"
		if c.measured() {
			text = format(value(c))
		}
		row = append(row, text, "")
	}
	t.Add(append(row, ratios(cells, func(c cell) (float64, bool) { return value(c), c.measured() })...)...)
}

type duel struct{ ours, theirs cell }

func duels(cells []cell) []duel {
	var out []duel
	for _, p := range pairs() {
		ours := slices.IndexFunc(cells, func(c cell) bool { return c.setup == p.ours })
		theirs := slices.IndexFunc(cells, func(c cell) bool { return c.setup == p.theirs })
		if ours >= 0 && theirs >= 0 {
			out = append(out, duel{cells[ours], cells[theirs]})
		}
	}
	return out
}

func ratios(cells []cell, value func(cell) (float64, bool)) []string {
	var out []string
	for _, d := range duels(cells) {
		ours, okOurs := value(d.ours)
		theirs, okTheirs := value(d.theirs)
		text := nothing
		if r, ok := ratio(ours, theirs); ok && okOurs && okTheirs {
			text = formatRatio(r)
		}
		out = append(out, text)
	}
	return out
}

func percentileOf(c cell, key string, p int) string {
	switch {
	case c.measured():
	case len(c.failures) > 0:
		return "failed"
	default:
		return nothing
	}
	ms, ok := c.samples[key].Percentile(p)
	if !ok {
		return nothing
	}
	text := formatMillis(ms)
	if n := len(c.samples[key]); n < c.pods {
		text += fmt.Sprintf(" (%d of %d)", n, c.pods)
	}
	return text
}

func writesTable(cells []cell, of func(cell) []Write) string {
	var lists [][]Write
	for _, c := range cells {
		lists = append(lists, of(c))
	}
	t := table.Table{Left: map[int]bool{1: true, 2 + len(cells): true}}
	head := []string{"who", "write"}
	for _, c := range cells {
		head = append(head, string(c.setup))
	}
	t.Add(append(head, "what it buys")...)
	for _, w := range mergeWrites(lists...) {
		row := []string{shortUser(w.User), w.Verb + " " + w.Resource}
		for i, c := range cells {
			row = append(row, countOf(c, lists[i], w))
		}
		t.Add(append(row, purpose(w))...)
	}
	return t.String()
}

func countOf(c cell, list []Write, kind Write) string {
	for _, w := range list {
		if w.User != kind.User || w.Verb != kind.Verb || w.Resource != kind.Resource {
			continue
		}
		text := fmt.Sprintf("%.2f", c.perPod(w.Count))
		if w.Failed > 0 {
			text += fmt.Sprintf(" (%.2f refused)", c.perPod(w.Failed))
		}
		return text
	}
	return nothing
}

func shortUser(user string) string {
	return strings.TrimPrefix(strings.TrimPrefix(user, "system:serviceaccount:"), "system:")
}

func cpuTable(cells []cell) string {
	var t table.Table
	names := map[string]bool{}
	head := []string{"component"}
	for _, c := range cells {
		head = append(head, string(c.setup))
		for name := range c.cpu {
			names[name] = true
		}
	}
	t.Add(head...)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		row := []string{name}
		for _, c := range cells {
			text := nothing
			if seconds, ok := c.cpu[name]; ok {
				text = fmt.Sprintf("%.1f", seconds)
			}
			row = append(row, text)
		}
		t.Add(row...)
	}
	return t.String()
}

func oneLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
