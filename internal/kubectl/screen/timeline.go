// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// gapSigns is the width of the longest gap's bar.
const gapSigns = 30

// Timeline prints a pod's path, with a bar as long as each gap on a terminal.
func Timeline(w io.Writer, s Style, x facts.Timeline, now time.Time) error {
	p := &page{w: w, s: s, now: now}
	where := "no node"
	if x.Node != "" {
		where = "at " + x.Node
	}
	p.printf("%s  %s\n", s.paint(bold, "pod "+x.Namespace+"/"+x.Name), where)
	longest := 0.0
	for _, step := range x.Steps {
		longest = max(longest, step.GapSeconds)
	}
	for _, step := range x.Steps {
		p.printf("%s", stepLine(s, step, longest))
	}
	if x.Done {
		p.printf("%s in all\n", seconds(x.TotalSeconds))
		return p.err
	}
	if len(x.Missing) > 0 {
		var names []string
		for _, m := range x.Missing {
			names = append(names, string(m))
		}
		p.printf("not yet: %s\n", strings.Join(names, ", "))
	}
	p.reasons(0, x.Waits)
	return p.err
}

// StepLine is one step as a line of its own.
func StepLine(s Style, step facts.Step) string { return stepLine(s, step, 0) }

func stepLine(s Style, step facts.Step, longest float64) string {
	before := " "
	if step.NotAfter {
		before = "≤"
	}
	name := string(step.Stage)
	if step.Volume != "" {
		name += " " + step.Volume
	}
	at := step.At.UTC().Format("15:04:05")
	if step.At.Nanosecond() != 0 {
		at = step.At.UTC().Format("15:04:05.000")
	}
	line := fmt.Sprintf("%s %-12s  %8s  %-24s", before, at, "+"+seconds(step.GapSeconds), name)
	if s.Terminal && longest > 0 {
		line += s.paint(blue, strings.Repeat(signUsed, int(step.GapSeconds/longest*gapSigns+0.5)))
	}
	return strings.TrimRight(line, " ") + "\n"
}

func seconds(n float64) string { return fmt.Sprintf("%.1fs", n) }
