// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// A pipe gets no escape sequence and no bar; a terminal gets both, and with
// NO_COLOR bars only.
func TestStyles(t *testing.T) {
	slots := []facts.Slots{{Node: "n", Ready: true, Registered: true, Driver: "d", Used: 2, Reserved: 1, Limit: new(int32(4)), Free: new(int32(1))}}
	show := func(s Style) string {
		var b bytes.Buffer
		if err := Slots(slots, s).Print(&b, NewOutput(true), s); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if text := show(StyleOf(&bytes.Buffer{})); strings.ContainsAny(text, "\x1b█░") {
		t.Errorf("a pipe gets %q", text)
	}
	if text := show(Style{Terminal: true}); strings.Contains(text, "\x1b") || !strings.Contains(text, "██░·") {
		t.Errorf("a terminal without colours gets %q", text)
	}
	if text := show(Style{Terminal: true, Colour: true}); !strings.Contains(text, "\x1b[34m██\x1b[0m\x1b[32m░\x1b[0m") {
		t.Errorf("a terminal gets %q", text)
	}
}

// A bar of many slots is scaled down, and no kind is lost.
func TestBarScales(t *testing.T) {
	text := bar(facts.Slots{Used: 1, Kept: 1, Leaving: 1, Reserved: 1, Limit: new(int32(128)), Free: new(int32(124))})
	for _, sign := range []string{signUsed, signKept, signLeaving, signReserved, signFree} {
		if !strings.Contains(text, sign) {
			t.Errorf("%s is missing in %s", sign, text)
		}
	}
	if n := len([]rune(text)); n > mostSigns+4 {
		t.Errorf("the bar has %d signs", n)
	}
	if text := bar(facts.Slots{Used: 2}); text != "██…" {
		t.Errorf("a node without a limit shows %s", text)
	}
}

func TestWrap(t *testing.T) {
	s := Style{Width: 40}
	for line := range strings.Lines(s.wrap(strings.Repeat("word ", 30)+strings.Repeat("x", 60), 10)) {
		if n := len([]rune(strings.TrimSpace(line))); n > 30 && n != 60 {
			t.Errorf("a line has %d columns: %q", n, line)
		}
	}
	if got := s.wrap("a  b\nc", 0); got != "a b c" {
		t.Errorf("got %q", got)
	}
}

// Lines are cut by what is seen of them, and colours are ended.
func TestClip(t *testing.T) {
	s := Style{Width: 3, Colour: true}
	if got := s.clip("\x1b[31mabcdef\x1b[0m\nxy\n"); got != "\x1b[31mabc\x1b[0m\nxy\n" {
		t.Errorf("got %q", got)
	}
}

// top takes no more lines than the terminal has.
func TestTopFits(t *testing.T) {
	now := time.Unix(0, 0)
	top := Top{Now: now}
	for range 100 {
		top.Slots = append(top.Slots, facts.Slots{Node: "n", Driver: "d"})
		top.Waits = append(top.Waits, facts.PodWait{})
		top.Volumes = append(top.Volumes, facts.Volume{})
	}
	var b bytes.Buffer
	if err := top.Print(&b, Style{Terminal: true, Width: 80, Height: 24}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n > 24 {
		t.Errorf("it takes %d lines", n)
	}
	if !strings.Contains(b.String(), "more\n") {
		t.Error("it does not say what it leaves out")
	}
}

// The output is for programs only where it says so, and nonsense is refused.
func TestOutputFormats(t *testing.T) {
	for format, structured := range map[string]bool{"": false, "wide": false, "json": true, "yaml": true, "jsonpath={.kind}": true} {
		o := NewOutput(true)
		o.Format = format
		if err := o.Validate(); err != nil || o.Structured() != structured {
			t.Errorf("%q: structured %t, %v", format, o.Structured(), err)
		}
	}
	for _, format := range []string{"xml", "jsonpath", "jsonpath={.a", "custom-columns", "custom-columns=A", "custom-columns=A:.b,C", "custom-columns-file=/nowhere"} {
		o := NewOutput(false)
		o.Format = format
		if o.Validate() == nil {
			t.Errorf("%q is taken", format)
		}
	}
	o := NewOutput(true)
	o.Format = "jsonpath={.kind} {.items[0].a}"
	var b bytes.Buffer
	if err := o.Print(&b, "ThingList", []map[string]int{{"a": 7}}); err != nil || b.String() != "ThingList 7" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// -o name prints what kubectl takes again, each object once; custom-columns
// prints the fields that are asked for.
func TestNamesAndColumns(t *testing.T) {
	slots := []map[string]any{{"node": "worker-1", "driver": "a", "free": 2}, {"node": "worker-1", "driver": "b"}}
	tickets := []map[string]any{{"name": "nightly"}, {"name": "db-0", "derived": true}}
	for _, test := range []struct {
		kind, format string
		value        any
		want         string
	}{
		{"NodeSlotsList", "name", slots, "node/worker-1\n"},
		{"TicketList", "name", tickets, "volumeticket.moorage.dev/nightly\npod/db-0\n"},
		{"PodExplanation", "name", map[string]string{"name": "db-0"}, "pod/db-0\n"},
		{"NodeSlotsList", "custom-columns=N:.node,FREE:free", slots, "N          FREE\nworker-1   2\nworker-1   <none>\n"},
	} {
		o := NewOutput(true)
		o.Format = test.format
		var b bytes.Buffer
		if err := o.Print(&b, test.kind, test.value); err != nil || b.String() != test.want {
			t.Errorf("%s -o %s: %q, want %q (%v)", test.kind, test.format, b.String(), test.want, err)
		}
	}
}
