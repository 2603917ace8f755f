// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// player tells the demo to people.
type player struct {
	out   io.Writer
	paint bool
	began time.Time // of the scene that is on
}

// Margins of what a scene says and shows.
const (
	lineWidth  = 96
	sayMargin  = "    "
	showMargin = "              "
)

// maxPodsShown bounds a scene's table of pods.
const maxPodsShown = 6

// Styles of a terminal.
const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
	cyan  = "36"
)

func (p *player) styled(style, text string) string {
	if !p.paint {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

func (p *player) opening(scenes int) {
	fmt.Fprintln(p.out, p.styled(bold, "Moorage on a real cluster"))
	fmt.Fprintln(p.out, wrapped(fmt.Sprintf("A real etcd, API server, controller manager, scheduler, external-attacher and kubelets start on this machine; "+
		"only containers and disks are simulated. The disk service judges every call it gets. %d scenes follow; where upstream is shown, "+
		"a second cluster without Moorage plays the same scene at the same time.", scenes), ""))
}

func (p *player) heading(number int, scene sandbox.Scene) {
	title := fmt.Sprintf(" %d  %s ", number, scene.Title)
	fmt.Fprintf(p.out, "\n%s\n", p.styled(bold, "━━━"+title+strings.Repeat("━", max(0, lineWidth-3-len(title)))))
	fmt.Fprintln(p.out, p.styled(dim, wrapped(scene.Intro, "")))
}

// voice says who is on.
func (p *player) voice(name string) { fmt.Fprintf(p.out, "\n  %s\n", p.styled(cyan, name)) }

// say tells one line, with the time since the scene began.
func (p *player) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	at := fmt.Sprintf("%s%6.1f s  ", sayMargin, time.Since(p.began).Seconds())
	fmt.Fprintln(p.out, p.styled(dim, at)+strings.TrimSpace(wrapped(text, showMargin)))
}

// indented is where tables go.
func (p *player) indented() io.Writer { return &indentWriter{w: p.out, margin: showMargin} }

// times shows when the scene's pods reached the stages of their path.
func (p *player) times(r sandbox.Result, all bool) {
	if all {
		for _, pod := range r.Pods {
			pod.Print(p.indented())
		}
		return
	}
	columns := []sandbox.Stage{sandbox.Bound, sandbox.Attached, sandbox.Reported, sandbox.Running}
	t := tabwriter.NewWriter(p.indented(), 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "POD\tNODE")
	for _, stage := range columns {
		fmt.Fprintf(t, "\t%s", strings.ToUpper(string(stage)))
	}
	fmt.Fprintln(t)
	for i, pod := range r.Pods {
		if i == maxPodsShown {
			fmt.Fprintf(t, "… and %d more\n", len(r.Pods)-i)
			break
		}
		fmt.Fprintf(t, "%s\t%s", pod.Pod, cmp.Or(pod.Node, "none"))
		for _, stage := range columns {
			after := "–"
			if d, ok := pod.Between(sandbox.Created, stage); ok {
				after = fmt.Sprintf("%.2f s", d.Seconds())
			}
			fmt.Fprintf(t, "\t%s", after)
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush() // a terminal or a file; the next line would fail, too
}

// verdict says how a scene ended; 1 if it failed.
func (p *player) verdict(r sandbox.Result) int {
	if r.Passed {
		fmt.Fprintf(p.out, "%s%s %s; nothing is left over (%.0f s)\n", sayMargin, p.styled(green, "✓"), judged(r), r.Seconds)
		return 0
	}
	fmt.Fprintf(p.out, "%s%s %s\n", sayMargin, p.styled(red, "✗ not as expected:"), r.Error)
	for _, v := range r.Violations {
		fmt.Fprintf(p.out, "%s  violation: %s: %s\n", sayMargin, v.Rule, v.Message)
	}
	if r.Logs != "" {
		fmt.Fprintf(p.out, "%s  the components' logs are kept in %s\n", sayMargin, r.Logs)
	}
	return 1
}

// judged says what the judge saw in a scene that ended as expected.
func judged(r sandbox.Result) string {
	saw := "no violation"
	if len(r.Excused) > 0 {
		saw = fmt.Sprintf("%d violations (%s), as expected of upstream", len(r.Excused), r.Excused[0].Rule)
	}
	return fmt.Sprintf("the judge saw %d calls and %s", r.Calls, saw)
}

func (p *player) closing(failed int, took time.Duration) {
	fmt.Fprintln(p.out)
	if failed == 0 {
		fmt.Fprintln(p.out, p.styled(bold, fmt.Sprintf("Every expectation held (%.0f s).", took.Seconds())))
		fmt.Fprintf(p.out, "Go on with `%[1]s list`, `%[1]s run SCENARIO`, or `%[1]s up` for a cluster to play with.\n", os.Args[0])
		return
	}
	fmt.Fprintln(p.out, p.styled(bold, fmt.Sprintf("%d of the scenes did not end as expected.", failed)))
}

// wrapped breaks a text into lines, each after the margin.
func wrapped(text, margin string) string {
	var b strings.Builder
	line := margin
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > lineWidth && line != margin {
			b.WriteString(line + "\n")
			line = margin
		}
		if line != margin {
			line += " "
		}
		line += word
	}
	b.WriteString(line)
	return b.String()
}

// indentWriter puts a margin before every line, in however many pieces the
// lines come: a tabwriter writes cell by cell.
type indentWriter struct {
	w      io.Writer
	margin string
	inLine bool // the last piece did not end its line
}

func (w *indentWriter) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		if !w.inLine && line != "\n" {
			line = w.margin + line
		}
		w.inLine = !strings.HasSuffix(line, "\n")
		if _, err := io.WriteString(w.w, line); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}
