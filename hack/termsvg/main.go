// SPDX-License-Identifier: Apache-2.0

// Command termsvg draws what a program wrote to a terminal as an SVG:
//
//	CLICOLOR_FORCE=1 bin/moorage-sandbox demo > demo.txt
//	go run ./hack/termsvg -scenes 2,8 < demo.txt > docs/demo.svg
//
// Each scene is a page: its lines appear one after the other, then comes the
// next page, and after the last the first again. Without -scenes all that was
// written is one still page. It knows the few styles that Moorage's programs use.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"html"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// The grid and the colours of the picture.
const (
	cellWidth  = 8.43
	lineHeight = 19
	fontSize   = 14
	margin     = 18
	// maxColumns keeps the picture legible on a page: what is longer is cut.
	maxColumns = 116
)

var colours = map[string]string{"31": "#ff7b72", "32": "#7ee787", "36": "#79c0ff"}

// heading begins the line that begins a scene; the scene's number follows. closing
// begins the line after the last scene.
const (
	heading = "━━━ "
	closing = "Every expectation held"
)

func main() {
	scenes := flag.String("scenes", "", "numbers of the demo's scenes to draw, each a page; default: everything as one still page")
	flag.Parse()
	var numbers []string
	if *scenes != "" {
		numbers = strings.Split(*scenes, ",")
	}
	if err := draw(os.Stdout, os.Stdin, numbers); err != nil {
		fmt.Fprintln(os.Stderr, "termsvg:", err)
		os.Exit(1)
	}
}

// page is what is seen at once.
type page struct {
	lines  []string // as SVG
	widest int      // columns
}

// draw reads lines with SGR escapes and writes the picture.
func draw(w io.Writer, r io.Reader, scenes []string) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	pages, err := paginate(strings.Split(strings.TrimRight(string(text), "\n"), "\n"), scenes)
	if err != nil {
		return err
	}
	width, height := 0.0, 0
	for _, p := range pages {
		width = max(width, float64(p.widest)*cellWidth+2*margin)
		height = max(height, len(p.lines)*lineHeight+2*margin)
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d">`+"\n", width, height, width, height)
	animate(out, pages, height)
	fmt.Fprintln(out, `<rect width="100%" height="100%" rx="8" fill="#0d1117"/>`)
	fmt.Fprintf(out, `<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="%d" fill="#e6edf3">`+"\n", fontSize)
	for i, p := range pages {
		fmt.Fprintf(out, `<g class="page" id="page%d">`+"\n", i)
		for n, line := range p.lines {
			if line != "" {
				fmt.Fprintf(out, `<text x="%d" y="%d">%s</text>`+"\n", margin, margin+(n+1)*lineHeight-5, line)
			}
		}
		if len(pages) > 1 {
			fmt.Fprintf(out, `<rect class="curtain" id="curtain%d" x="%d" y="%d" width="%.0f" height="%d" fill="#0d1117"/>`+"\n",
				i, margin/2, margin, width-margin, height-2*margin)
		}
		fmt.Fprintln(out, "</g>")
	}
	fmt.Fprintln(out, "</g>\n</svg>")
	return out.Flush()
}

// paginate draws the lines of each scene as a page, or all of them as one.
func paginate(lines, scenes []string) ([]page, error) {
	all := make([]page, max(1, len(scenes)))
	current, style := 0, ""
	if scenes != nil {
		current = -1
	}
	for _, line := range lines {
		if _, title, ok := strings.Cut(line, heading); ok && scenes != nil {
			number, _, _ := strings.Cut(strings.TrimSpace(title), " ")
			current = slices.Index(scenes, number)
		} else if scenes != nil && strings.Contains(line, closing) {
			current = -1
		}
		var drawn string
		var columns int
		drawn, columns, style = spans(line, style)
		if current >= 0 {
			all[current].lines = append(all[current].lines, drawn)
			all[current].widest = max(all[current].widest, columns)
		}
	}
	for i := range all {
		p := &all[i]
		for len(p.lines) > 0 && p.lines[len(p.lines)-1] == "" {
			p.lines = p.lines[:len(p.lines)-1]
		}
		if scenes != nil && len(p.lines) == 0 {
			return nil, fmt.Errorf("there is no scene %s", scenes[i])
		}
	}
	return all, nil
}

// How long things take, in seconds.
const (
	perLine = 0.3
	toRead  = 8.0
)

// animate writes the styles by which the pages follow each other, and the lines of
// each are uncovered by a curtain that goes down line by line. Who wants no motion
// sees the first page.
func animate(out io.Writer, pages []page, height int) {
	fmt.Fprintln(out, "<style>\ntext, tspan { white-space: pre }")
	defer fmt.Fprintln(out, "</style>")
	if len(pages) < 2 {
		return
	}
	cycle := 0.0
	for _, p := range pages {
		cycle += p.seconds()
	}
	fmt.Fprintf(out, ".page { opacity: 0 } #page0 { opacity: 1 } .curtain { transform: translateY(%dpx) }\n", height)
	fmt.Fprintln(out, "@media (prefers-reduced-motion: no-preference) {")
	percent := func(seconds float64) float64 { return 100 * seconds / cycle }
	// It begins with the first page whole, for those who show a picture's first moment only.
	timing := fmt.Sprintf("%.1fs -%.1fs infinite", cycle, float64(len(pages[0].lines))*perLine)
	began := 0.0
	for i, p := range pages {
		uncovered, over := began+float64(len(p.lines))*perLine, began+p.seconds()
		fmt.Fprintf(out, "#page%d { animation: page%d %s step-end }\n", i, i, timing)
		fmt.Fprintf(out, "@keyframes page%d { 0%% { opacity: 0 } %.3f%% { opacity: 1 } %.3f%% { opacity: %d } }\n",
			i, percent(began), percent(over), last(i, pages))
		fmt.Fprintf(out, "#curtain%d { animation: curtain%d %s }\n", i, i, timing)
		fmt.Fprintf(out, "@keyframes curtain%d { 0%%, %.3f%% { transform: translateY(0); animation-timing-function: steps(%d) } %.3f%%, 100%% { transform: translateY(%dpx) } }\n",
			i, percent(began), len(p.lines), percent(uncovered), len(p.lines)*lineHeight)
		began = over
	}
	fmt.Fprintln(out, "}")
}

// seconds is how long a page is seen.
func (p page) seconds() float64 { return float64(len(p.lines))*perLine + toRead }

// last is 1 for the last page, which stays until the first one comes again.
func last(i int, pages []page) int {
	if i == len(pages)-1 {
		return 1
	}
	return 0
}

// spans turns one line into tspans, which begins in the style that the one before
// ended with. It counts its columns. Each span says where it starts, so that the
// columns stay aligned in any font.
func spans(line, style string) (drawn string, columns int, after string) {
	var b strings.Builder
	for i, part := range strings.Split(line, "\x1b[") {
		text := part
		if i > 0 {
			code, rest, found := strings.Cut(part, "m")
			if !found {
				continue
			}
			style, text = attributes(code), rest
		}
		room := maxColumns - columns
		if text == "" || room <= 0 {
			continue
		}
		if runes := []rune(text); len(runes) > room {
			text = string(runes[:room-1]) + "…"
		}
		fmt.Fprintf(&b, `<tspan x="%.1f"%s>%s</tspan>`, margin+float64(columns)*cellWidth, style, html.EscapeString(text))
		columns += utf8.RuneCountInString(text)
	}
	return b.String(), columns, style
}

func attributes(code string) string {
	switch code {
	case "1":
		return ` font-weight="bold"`
	case "2":
		return ` fill="#8b949e"`
	}
	if colour, ok := colours[code]; ok {
		return ` fill="` + colour + `"`
	}
	return ""
}
