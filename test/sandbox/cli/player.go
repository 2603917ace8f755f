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
	"unicode/utf8"

	"github.com/moorage-dev/moorage/test/sandbox"
)

type player struct {
	out   io.Writer
	paint bool
	began time.Time // of the scene that is on
}

const (
	lineWidth  = 96
	sayMargin  = "    "
	showMargin = "              "
)

const maxPodsShown = 6

const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
	cyan  = "36"
)

func (p *player) styled(style, text string) string {
	if !p.paint || style == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

func (p *player) opening(scenes int) {
	fmt.Fprintln(p.out, p.styled(bold, "Moorage on a real cluster"))
	fmt.Fprintln(p.out, wrapped(fmt.Sprintf("A real etcd, API server, controller manager, scheduler, external-attacher and kubelets start on this machine; "+
		"only containers and disks are simulated. The disk service judges every call it gets. %d scenes follow; where upstream is shown, "+
		"a second cluster without Moorage plays the same scene at the same time. Both start now, in some 20 seconds.", scenes), ""))
}

func (p *player) heading(number int, scene sandbox.Scene) {
	p.rule(fmt.Sprintf("%d  %s", number, scene.Title))
	fmt.Fprintln(p.out, p.styled(dim, wrapped(scene.Intro, "")))
}

func (p *player) rule(title string) {
	fmt.Fprintf(p.out, "\n%s\n", p.styled(bold, "━━━ "+title+" "+strings.Repeat("━", max(0, lineWidth-5-len(title)))))
}

func (p *player) voice(name string) { fmt.Fprintf(p.out, "\n  %s\n", p.styled(cyan, name)) }

func (p *player) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	at := fmt.Sprintf("%s%6.1f s  ", sayMargin, time.Since(p.began).Seconds())
	fmt.Fprintln(p.out, p.styled(dim, at)+strings.TrimSpace(wrapped(text, showMargin)))
}

func (p *player) indented() io.Writer { return &indentWriter{w: p.out, margin: showMargin} }

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
	_ = t.Flush() // a terminal or a file; the next line would fail as well
}

func (p *player) verdict(scene sandbox.Scene, r sandbox.Result) {
	if r.Passed {
		p.end(green, "✓ "+scene.Does, fmt.Sprintf("The judge saw %d calls and no violation; nothing is left over (%.0f s)", r.Calls, r.Seconds))
		return
	}
	p.unexpected(r)
}

// The scenario passes if upstream fails in the expected way: a reader must not see that as a success.
func (p *player) failure(scene sandbox.Scene, r sandbox.Result) {
	if !r.Passed {
		p.unexpected(r)
		return
	}
	saw := fmt.Sprintf("(%.0f s)", r.Seconds)
	if len(r.Excused) > 0 {
		saw = fmt.Sprintf("The judge saw %d violations of %s %s", len(r.Excused), r.Excused[0].Rule, saw)
	}
	p.end(red, "✗ "+scene.Fails, saw)
}

func (p *player) end(style, what, saw string) {
	fmt.Fprintf(p.out, "%s%s\n%s  %s\n", sayMargin, p.styled(style, what), sayMargin, p.styled(dim, saw))
}

func (p *player) unexpected(r sandbox.Result) {
	fmt.Fprintf(p.out, "%s%s %s\n", sayMargin, p.styled(red, "✗ "+unexpected+":"), r.Error)
	for _, v := range r.Violations {
		fmt.Fprintf(p.out, "%s  violation: %s: %s\n", sayMargin, v.Rule, v.Message)
	}
	if r.Logs != "" {
		fmt.Fprintf(p.out, "%s  the components' logs are kept in %s\n", sayMargin, r.Logs)
	}
}

const unexpected = "not as expected"

type row struct {
	scene             sandbox.Scene
	upstream, moorage *sandbox.Result // nil: not played
}

func (r row) failed() (n int) {
	for _, result := range []*sandbox.Result{r.upstream, r.moorage} {
		if result != nil && !result.Passed {
			n++
		}
	}
	return n
}

func (p *player) closing(rows []row, took time.Duration) (failed int) {
	p.rule("All scenes")
	first, second := len("SCENE"), len("UPSTREAM")
	for _, r := range rows {
		first, second = max(first, len(r.scene.Short)), max(second, len(r.scene.Fails)+2)
	}
	line := func(scene, upstream, style, moorage string) {
		fmt.Fprintf(p.out, "  %s  %s  %s\n", padded(scene, first), p.styled(style, padded(upstream, second)), moorage)
	}
	line("SCENE", "UPSTREAM", "", "MOORAGE")
	for _, r := range rows {
		failed += r.failed()
		upstream, style, moorage := "not played", dim, p.styled(green, "✓ "+r.scene.Does)
		switch {
		case r.upstream != nil && !r.upstream.Passed:
			upstream, style = unexpected, red
		case r.upstream != nil:
			upstream, style = "✗ "+r.scene.Fails, red
		}
		if r.moorage == nil || !r.moorage.Passed {
			moorage = p.styled(red, "✗ "+unexpected)
		}
		line(r.scene.Short, upstream, style, moorage)
	}
	fmt.Fprintln(p.out)
	if failed == 0 {
		fmt.Fprintf(p.out, "It took %.0f s. Go on with `%[2]s list`, `%[2]s run SCENARIO`, or `%[2]s up` for a cluster to play with.\n", took.Seconds(), os.Args[0])
		return 0
	}
	fmt.Fprintln(p.out, p.styled(bold, fmt.Sprintf("%d parts of the scenes did not go as expected.", failed)))
	return failed
}

func padded(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(text)))
}

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

// A tabwriter writes cell by cell: a line may come in many pieces.
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
