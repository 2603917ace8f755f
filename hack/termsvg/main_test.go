// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

// drawn is the picture of a text, which has to be XML.
func drawn(t *testing.T, text string, scenes ...string) string {
	t.Helper()
	var out strings.Builder
	if err := draw(&out, strings.NewReader(text), scenes); err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(strings.NewReader(out.String()))
	for {
		if _, err := decoder.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("not XML: %v\n%s", err, out.String())
		}
	}
	return out.String()
}

// A style goes on in the next line until it is ended.
func TestDraw(t *testing.T) {
	picture := drawn(t, "plain\n\x1b[32m✓\x1b[0m a < b & c\n\x1b[2mfirst\nsecond\x1b[0m\n")
	for _, want := range []string{">plain<", `fill="#7ee787">✓<`, "> a &lt; b &amp; c<", `fill="#8b949e">first<`, `fill="#8b949e">second<`} {
		if !strings.Contains(picture, want) {
			t.Errorf("no %s in\n%s", want, picture)
		}
	}
	if long := drawn(t, strings.Repeat("x", 200)); !strings.Contains(long, ">"+strings.Repeat("x", maxColumns-1)+"…<") {
		t.Errorf("a line of 200 columns is not cut:\n%s", long)
	}
	if strings.Contains(picture, "animation") {
		t.Errorf("one page moves:\n%s", picture)
	}
}

// Each scene that is asked for is a page, in the order that is asked for.
func TestScenesArePages(t *testing.T) {
	const demo = "opening\n\n\x1b[1m━━━ 1  One ━━━\x1b[0m\nalpha\n\n━━━ 2  Two ━━━\nbeta\n\n━━━ 3  Three ━━━\ngamma\n\nEvery expectation held.\n"
	picture := drawn(t, demo, "3", "1")
	gamma, alpha := strings.Index(picture, ">gamma<"), strings.Index(picture, ">alpha<")
	if gamma < 0 || alpha < gamma || strings.Contains(picture, ">beta<") || strings.Contains(picture, ">opening<") || strings.Contains(picture, "Every") {
		t.Errorf("other pages than scene 3 and 1:\n%s", picture)
	}
	if strings.Count(picture, "@keyframes page") != 2 {
		t.Errorf("not two pages follow each other:\n%s", picture)
	}
	if err := draw(io.Discard, strings.NewReader(demo), []string{"4"}); err == nil {
		t.Error("a scene that there is none of is drawn")
	}
}
