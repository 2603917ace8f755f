// SPDX-License-Identifier: Apache-2.0

// Command termsvg draws a scene of the demo as an SVG:
//
//	bin/moorage-sandbox demo > demo.txt
//	go run ./hack/termsvg -scene 2 < demo.txt > docs/demo.svg
//
// Each player of the scene, upstream and Moorage, has a pane. The panes stand below each other and are
// narrow, so that a phone shows them in a readable size. The colour of a pane is its last line's: ✗ is
// red, ✓ is green. Tables that are wider than a pane are left out, with their command.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"html"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	cellWidth  = 8.43
	lineHeight = 19
	fontSize   = 14
	margin     = 14
	columns    = 52 // of a pane
)

const (
	ground = "#0d1117"
	plain  = "#e6edf3"
	faint  = "#8b949e"
	blue   = "#79c0ff"
	red    = "#ff7b72"
	green  = "#7ee787"
)

func main() {
	scene := flag.String("scene", "2", "number of the demo's scene to draw")
	flag.Parse()
	if err := draw(os.Stdout, os.Stdin, *scene); err != nil {
		fmt.Fprintln(os.Stderr, "termsvg:", err)
		os.Exit(1)
	}
}

type line struct{ text, colour string }

type pane struct {
	title, colour string
	lines         []line
}

func draw(w io.Writer, r io.Reader, scene string) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	panes := split(string(text), scene)
	if len(panes) == 0 {
		return fmt.Errorf("there is no scene %s: give the output of moorage-sandbox demo", scene)
	}
	width, height := columns*cellWidth+4*margin, margin
	for _, p := range panes {
		height += p.height() + margin
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" width="%.0f" height="%d" viewBox="0 0 %.0f %d">`+"\n", width, height, width, height)
	fmt.Fprintf(out, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", ground)
	fmt.Fprintf(out, `<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="%d">`+"\n", fontSize)
	top := margin
	for _, p := range panes {
		p.draw(out, top, width)
		top += p.height() + margin
	}
	fmt.Fprintln(out, "</g>\n</svg>")
	return out.Flush()
}

func (p pane) height() int { return (len(p.lines)+1)*lineHeight + 2*margin }

func (p pane) draw(out io.Writer, top int, width float64) {
	fmt.Fprintf(out, `<rect x="%d" y="%d" width="%.0f" height="%d" rx="6" fill="none" stroke="%s" stroke-width="2"/>`+"\n",
		margin, top, width-2*margin, p.height(), p.colour)
	write := func(n int, l line, weight string) {
		fmt.Fprintf(out, `<text x="%d" y="%d" fill="%s"%s>%s</text>`+"\n", 2*margin, top+margin+n*lineHeight+fontSize, l.colour, weight, html.EscapeString(l.text))
	}
	write(0, line{p.title, p.colour}, ` font-weight="bold"`)
	for i, l := range p.lines {
		write(i+1, l, "")
	}
}

var (
	escape  = regexp.MustCompile("\x1b\\[[0-9;]*m")
	heading = regexp.MustCompile(`^━━━ (\S+)`)
	voice   = regexp.MustCompile(`^  (\S.*)$`)
	said    = regexp.MustCompile(`^ {4}( *[0-9.]+ s)  (.*)$`)
	ending  = regexp.MustCompile(`^ {4}([✓✗] .*)$`)
	shown   = regexp.MustCompile(`^ {14}(.*)$`)
)

func split(text, scene string) (panes []pane) {
	here := false
	var block []string // lines that a command has shown, its own first
	var at, words string
	flush := func() {
		if len(panes) == 0 {
			return
		}
		p := &panes[len(panes)-1]
		p.say(at, words)
		p.show(block)
		at, words, block = "", "", nil
	}
	for l := range strings.Lines(text) {
		l = strings.TrimRight(escape.ReplaceAllString(l, ""), " \n")
		if m := heading.FindStringSubmatch(l); m != nil {
			here = m[1] == scene
			continue
		}
		if !here {
			continue
		}
		if m := said.FindStringSubmatch(l); m != nil {
			flush()
			at, words = m[1], m[2]
		} else if m := ending.FindStringSubmatch(l); m != nil {
			flush()
			panes[len(panes)-1].end(m[1])
		} else if m := shown.FindStringSubmatch(l); m != nil {
			if begins := strings.HasPrefix(m[1], "$ ") || strings.HasPrefix(m[1], "POD "); begins {
				flush()
			} else if len(block) == 0 {
				words += " " + m[1]
				continue
			}
			block = append(block, m[1])
		} else if m := voice.FindStringSubmatch(l); m != nil && !strings.HasPrefix(l, "    ") {
			flush()
			panes = append(panes, pane{title: m[1], colour: faint})
		}
	}
	flush()
	return panes
}

func (p *pane) say(at, words string) {
	if words == "" {
		return
	}
	margin := strings.Repeat(" ", utf8.RuneCountInString(at)+2)
	text := at + " "
	for _, word := range strings.Fields(words) {
		if utf8.RuneCountInString(text)+1+utf8.RuneCountInString(word) > columns && strings.TrimSpace(text) != "" {
			p.lines = append(p.lines, line{text, plain})
			text = margin[:len(margin)-1]
		}
		text += " " + word
	}
	p.lines = append(p.lines, line{text, plain})
}

func (p *pane) show(block []string) {
	for _, l := range block {
		if utf8.RuneCountInString(l) > columns {
			return
		}
	}
	for i, l := range block {
		colour := faint
		if i == 0 {
			colour = blue
		}
		p.lines = append(p.lines, line{l, colour})
	}
}

func (p *pane) end(words string) {
	p.colour = green
	if strings.HasPrefix(words, "✗") {
		p.colour = red
	}
	p.lines = append(p.lines, line{words, p.colour})
}
