// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"strings"
)

// The pictures have their own ground: pages are light or dark.
const (
	ground = "#ffffff"
	ink    = "#1f2328"
	faint  = "#59636e"
	edge   = "#8c959f"
	ours   = "#0969da" // Moorage
	tint   = "#ddf4ff"
	others = "#818b98" // Kubernetes, drivers
	shade  = "#f6f8fa"
	bad    = "#cf222e"
)

type canvas struct {
	b             strings.Builder
	width, height int
}

func newCanvas(width, height int, title string) *canvas {
	c := &canvas{width: width, height: height}
	fmt.Fprintf(&c.b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">`+"\n", width, height, width, height)
	fmt.Fprintf(&c.b, "<title>%s</title>\n", html.EscapeString(title))
	fmt.Fprintf(&c.b, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", ground)
	fmt.Fprintln(&c.b, `<g font-family="-apple-system,Segoe UI,Helvetica,Arial,sans-serif">`)
	return c
}

func (c *canvas) String() string { return c.b.String() + "</g>\n</svg>\n" }

type style struct {
	size   int
	colour string
	bold   bool
	anchor string // start if empty
}

func (c *canvas) text(x, y int, s style, words string) {
	weight := ""
	if s.bold {
		weight = ` font-weight="bold"`
	}
	anchor := ""
	if s.anchor != "" {
		anchor = fmt.Sprintf(` text-anchor="%s"`, s.anchor)
	}
	fmt.Fprintf(&c.b, `<text x="%d" y="%d" font-size="%d" fill="%s"%s%s>%s</text>`+"\n", x, y, s.size, s.colour, weight, anchor, html.EscapeString(words))
}

func (c *canvas) box(x, y, width, height int, stroke, fill string) {
	fmt.Fprintf(&c.b, `<rect x="%d" y="%d" width="%d" height="%d" rx="6" fill="%s" stroke="%s" stroke-width="1.5"/>`+"\n", x, y, width, height, fill, stroke)
}

func (c *canvas) arrow(from, to, y int, colour string) {
	tip := to - 8
	if to < from {
		tip = to + 8
	}
	fmt.Fprintf(&c.b, `<path d="M%d %dH%d" stroke="%s" stroke-width="2"/>`+"\n", from, y, tip, colour)
	fmt.Fprintf(&c.b, `<path d="M%d %dL%d %dL%d %dZ" fill="%s"/>`+"\n", to, y, tip, y-5, tip, y+5, colour)
}
