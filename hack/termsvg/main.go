// SPDX-License-Identifier: Apache-2.0

// Command termsvg draws what a program wrote to a terminal as an SVG:
//
//	CLICOLOR_FORCE=1 bin/moorage-sandbox demo | go run ./hack/termsvg > docs/demo.svg
//
// It knows the few styles that Moorage's programs use.
package main

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// The grid and the colours of the picture.
const (
	cellWidth  = 8.43
	lineHeight = 19
	fontSize   = 14
	margin     = 18
)

var colours = map[string]string{"31": "#ff7b72", "32": "#7ee787", "36": "#79c0ff"}

func main() {
	if err := draw(os.Stdout, os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "termsvg:", err)
		os.Exit(1)
	}
}

// draw reads lines with SGR escapes and writes the picture.
func draw(w io.Writer, r io.Reader) error {
	var lines []string
	widest := 0
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		text, columns := spans(in.Text())
		lines = append(lines, text)
		widest = max(widest, columns)
	}
	if err := in.Err(); err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	width, height := float64(widest)*cellWidth+2*margin, len(lines)*lineHeight+2*margin
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%d" viewBox="0 0 %.0f %d">`+"\n", width, height, width, height)
	fmt.Fprintln(out, `<rect width="100%" height="100%" rx="8" fill="#0d1117"/>`)
	fmt.Fprintf(out, `<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="%d" fill="#e6edf3" xml:space="preserve">`+"\n", fontSize)
	for i, line := range lines {
		if line != "" {
			fmt.Fprintf(out, `<text x="%d" y="%d">%s</text>`+"\n", margin, margin+(i+1)*lineHeight-5, line)
		}
	}
	fmt.Fprintln(out, "</g>\n</svg>")
	return out.Flush()
}

// spans turns one line into tspans, and counts its columns. Each span says
// where it starts, so that the columns stay aligned in any font.
func spans(line string) (string, int) {
	var b strings.Builder
	column, style := 0, ""
	for _, part := range strings.Split("\x1b[0m"+line, "\x1b[") {
		code, text, found := strings.Cut(part, "m")
		if !found {
			continue
		}
		style = attributes(code)
		if text == "" {
			continue
		}
		fmt.Fprintf(&b, `<tspan x="%.1f"%s>%s</tspan>`, margin+float64(column)*cellWidth, style, html.EscapeString(text))
		column += utf8.RuneCountInString(text)
	}
	return b.String(), column
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
