// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/bench/internal/table"
)

// Page is the document that shows the results.
func Page() record.Page { return record.Page{Command: "moorage-sandbox bench-chaos --render"} }

// Render writes a result as Markdown: a row for each thing that was done or
// seen, a column for each mode.
func Render(r Result) string {
	var out strings.Builder
	head := []string{""}
	for _, run := range r.Runs {
		fmt.Fprintf(&out, "- %s: %s.\n", run.Mode, run.Measured())
		head = append(head, string(run.Mode))
	}
	out.WriteString("\n")
	var t table.Table
	t.Add(head...)
	row := func(name string, of func(Run) string) {
		cells := []string{name}
		for _, run := range r.Runs {
			cells = append(cells, of(run))
		}
		t.Add(cells...)
	}
	number := func(name string, of func(Run) int) {
		row(name, func(run Run) string { return strconv.Itoa(of(run)) })
	}
	for _, name := range keys(r, func(run Run) map[string]int { return run.Counts }) {
		number(name, func(run Run) int { return run.Counts[name] })
	}
	number("**pods that never run**", func(run Run) int { return len(run.Hanging) })
	number("calls of the disk service", func(run Run) int { return run.Calls })
	for _, rule := range keys(r, func(run Run) map[string]int {
		broken := map[string]int{}
		for rule, n := range run.Broken {
			broken[string(rule)] = n
		}
		return broken
	}) {
		number("violations of `"+rule+"`", func(run Run) int {
			for r, n := range run.Broken {
				if string(r) == rule {
					return n
				}
			}
			return 0
		})
	}
	number("**violations, all rules**", func(run Run) int {
		sum := 0
		for _, n := range run.Broken {
			sum += n
		}
		return sum
	})
	number("**left over**", func(run Run) int { return len(run.Left) })
	row("took", func(run Run) string { return fmt.Sprintf("%.0f s", run.Seconds) })
	row("outcome", func(run Run) string {
		if run.Failed != "" {
			return "failed"
		}
		if run.Mode.Moorage() {
			return "passed"
		}
		return "compared"
	})
	out.WriteString(t.String())
	for _, run := range r.Runs {
		details(&out, run)
	}
	return out.String()
}

// details are the first words of everything that went wrong.
func details(out *strings.Builder, run Run) {
	if run.Failed != "" {
		fmt.Fprintf(out, "\n%s failed: %s\n", run.Mode, firstLine(run.Failed))
	}
	for _, v := range run.First {
		fmt.Fprintf(out, "\n%s, the first `%s`: %s\n", run.Mode, v.Rule, firstLine(v.Message))
	}
	for _, list := range []struct {
		name  string
		lines []string
	}{{"never run", run.Hanging}, {"left over", run.Left}} {
		if len(list.lines) > 0 {
			fmt.Fprintf(out, "\n%s, %s, the first of %d: %s\n", run.Mode, list.name, len(list.lines), list.lines[0])
		}
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// keys are the names that any run counts, sorted.
func keys(r Result, of func(Run) map[string]int) []string {
	all := map[string]bool{}
	for _, run := range r.Runs {
		for name := range of(run) {
			all[name] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), cmp.Compare[string])
}
