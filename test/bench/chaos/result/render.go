// SPDX-License-Identifier: Apache-2.0

package result

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/bench/internal/table"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func Page(command string) record.Page {
	return record.Page{Command: "moorage-sandbox " + command + " --render"}
}

func Render(r Result) string {
	var out strings.Builder
	for _, run := range r.Runs {
		fmt.Fprintf(&out, "- %s: %s.\n", run.name(), run.Measured())
	}
	if steps := tabulateSteps(r.Runs); steps != "" {
		out.WriteString("\n" + steps)
	}
	if suites := tabulateSuites(r.Runs); suites != "" {
		out.WriteString("\n" + suites)
	}
	out.WriteString("\n" + tabulate(r.Runs))
	for _, run := range r.Runs {
		details(&out, run)
	}
	return out.String()
}

type sheet struct {
	table.Table
	runs []Run
}

func (s *sheet) row(name string, of func(Run) string) {
	cells := []string{name}
	for _, run := range s.runs {
		cells = append(cells, of(run))
	}
	s.Add(cells...)
}

func (s *sheet) number(name string, of func(Run) int) {
	s.row(name, func(run Run) string { return strconv.Itoa(of(run)) })
}

func (s *sheet) read(name string, of func(Run) string) {
	s.row(name, func(run Run) string {
		if !run.ended() {
			return "–"
		}
		return of(run)
	})
}

func tabulate(runs []Run) string {
	s := &sheet{runs: runs}
	s.row("", Run.name)
	for _, name := range keys(runs, func(run Run) map[string]int { return run.Counts }) {
		if _, outcome := suiteOf(name); outcome < 0 {
			s.row(name, func(run Run) string { return run.count(name) })
		}
	}
	s.number("**pods that never run**", func(run Run) int { return len(run.Hanging) })
	s.read("calls of the disk service", func(run Run) string { return strconv.Itoa(run.Calls) })
	for _, rule := range keys(runs, func(run Run) map[diskapi.Rule]int { return run.Broken }) {
		s.read(fmt.Sprintf("violations of `%s`", rule), func(run Run) string { return strconv.Itoa(run.Broken[rule]) })
		s.read("– answered with success", func(run Run) string { return run.happened(rule) })
	}
	s.read("**violations, all rules**", func(run Run) string { return strconv.Itoa(run.violations()) })
	s.read("**left over**", func(run Run) string { return strconv.Itoa(len(run.Left)) })
	s.row("took", func(run Run) string { return fmt.Sprintf("%.0f s", run.Seconds) })
	s.row("outcome", Run.outcome)
	return s.String()
}

var specOutcomes = []string{"passed", "failed", "skipped"}

// -1: another count
func suiteOf(name string) (suite string, outcome int) {
	suite, of, _ := strings.Cut(name, ": ")
	return suite, slices.Index(specOutcomes, of)
}

func tabulateSuites(runs []Run) string {
	s := &sheet{runs: runs}
	s.row(strings.Join(specOutcomes, " / "), Run.name)
	var suites []string
	for _, name := range keys(runs, func(run Run) map[string]int { return run.Counts }) {
		if suite, outcome := suiteOf(name); outcome >= 0 && !slices.Contains(suites, suite) {
			suites = append(suites, suite)
		}
	}
	if len(suites) == 0 {
		return ""
	}
	for _, suite := range suites {
		s.row(suite, func(run Run) string { return run.specs(suite) })
	}
	s.row("**all**", func(run Run) string { return run.specs("") })
	return s.String()
}

func (r Run) specs(suite string) string {
	var numbers [3]int
	for name, n := range r.Counts {
		if of, outcome := suiteOf(name); outcome >= 0 && (suite == "" || of == suite) {
			numbers[outcome] += n
		}
	}
	return fmt.Sprintf("%d / %d / %d", numbers[0], numbers[1], numbers[2])
}

func tabulateSteps(runs []Run) string {
	s := &sheet{runs: runs}
	s.row("", Run.name)
	var names []string
	for _, run := range runs {
		for _, step := range run.Steps {
			if !slices.Contains(names, step.Name) {
				names = append(names, step.Name)
			}
		}
	}
	for _, name := range names {
		s.row(name, func(run Run) string { return run.step(name) })
	}
	if len(names) == 0 {
		return ""
	}
	s.row("**all**", func(run Run) string { return tell(run.Steps...) })
	return s.String()
}

func (r Run) step(name string) string {
	i := slices.IndexFunc(r.Steps, func(s sandbox.Step) bool { return s.Name == name })
	if i < 0 {
		return "–"
	}
	return tell(r.Steps[i])
}

func tell(steps ...sandbox.Step) string {
	done, broken := 0, map[diskapi.Rule]int{}
	for _, step := range steps {
		done += step.Done
		for rule, n := range step.Broken {
			broken[rule] += n
		}
	}
	words := []string{strconv.Itoa(done)}
	for _, rule := range slices.Sorted(maps.Keys(broken)) {
		words = append(words, fmt.Sprintf("%d × `%s`", broken[rule], rule))
	}
	return strings.Join(words, ", ")
}

// Results of earlier versions lack it.
func (r Run) happened(rule diskapi.Rule) string {
	if r.Broken[rule] > 0 && r.Happened == nil {
		return "–"
	}
	return strconv.Itoa(r.Happened[rule])
}

func (r Run) name() string {
	name := string(r.Mode)
	if r.Lenient {
		name += ", lenient disks"
	}
	if r.WithoutNode {
		name += ", without moorage-node"
	}
	return name
}

func (r Run) count(name string) string {
	n, known := r.Counts[name]
	if !known && strings.HasPrefix(name, "ms") {
		return "–"
	}
	return strconv.Itoa(n)
}

// A run that failed earlier has no call of the disk service.
func (r Run) ended() bool { return r.Failed == "" || r.Calls > 0 }

func (r Run) violations() int {
	sum := 0
	for _, n := range r.Broken {
		sum += n
	}
	return sum
}

// A run without moorage-node, or beside the stock controller, serves for comparison, and is not judged.
func (r Run) outcome() string {
	switch {
	case r.Failed != "":
		return "failed"
	case r.Mode == sandbox.Standalone && !r.WithoutNode:
		return "passed"
	}
	return "compared"
}

func details(out *strings.Builder, run Run) {
	if run.Failed != "" {
		fmt.Fprintf(out, "\n%s failed: %s\n", run.name(), firstLine(run.Failed))
	}
	for _, v := range run.First {
		fmt.Fprintf(out, "\n%s, the first `%s`: %s\n", run.name(), v.Rule, firstLine(v.Message))
	}
	for _, list := range []struct {
		name  string
		lines []string
	}{{"never run", run.Hanging}, {"left over", run.Left}} {
		if len(list.lines) > 0 {
			fmt.Fprintf(out, "\n%s, %s, the first of %d: %s\n", run.name(), list.name, len(list.lines), list.lines[0])
		}
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func keys[K ~string](runs []Run, of func(Run) map[K]int) []K {
	all := map[K]bool{}
	for _, run := range runs {
		for key := range of(run) {
			all[key] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}
