// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"a\x1b[2Jb\x07\x7f\r\n\tc":     `a\x1b[2Jb\a\x7f\r` + "\n\tc",
		"\u009b2J \u202e\u2066\u200f.": `\u009b2J \u202e\u2066\u200f.`,
		"\x1b[31mred\x1b[0m":           `\x1b[31mred\x1b[0m`,
		"\x1b[12345678;31mred":         `\x1b[12345678;31mred`,
		"\x9b \xff":                    `\x9b \xff`,
		"Übung 名前 ██░ … \u00a0é":       "Übung 名前 ██░ … \u00a0é",
		"\u2028\ufeff\U000e0041":       `\u2028\ufeff\U000e0041`,
	} {
		var b bytes.Buffer
		if n, err := Visible(Visible(&b)).Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%q: %d, %v", text, n, err)
		}
		if b.String() != want {
			t.Errorf("%q is shown as %q, want %q", text, b.String(), want)
		}
	}
}

func TestVisibleColours(t *testing.T) {
	var b bytes.Buffer
	s := Style{Terminal: true, Colour: true}
	fmt.Fprint(Visible(&b), s.paint(red, "a\x1b[32mb"))
	if want := "\x1b[31ma" + `\x1b[32mb` + "\x1b[0m"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// A line end makes no second row, an escape no wrong column.
func TestVisibleCells(t *testing.T) {
	var b bytes.Buffer
	table := newTable("A", "B")
	table.add("x\ny", "1")
	table.add("\x1b[1m", "2")
	if err := table.Print(Visible(&b), NewOutput(true), Style{}); err != nil {
		t.Fatal(err)
	}
	if want := "A        B\nx\\ny     1\n\\x1b[1m  2\n"; b.String() != want {
		t.Errorf("got\n%s, want\n%s", b.String(), want)
	}
}

func TestControlCharactersForPrograms(t *testing.T) {
	var every strings.Builder
	for r := rune(0); r < 0x2100; r++ {
		every.WriteRune(r)
	}
	every.WriteString("\ufeff\ufffe\uffff\U000e0041\U0001f600")
	object := map[string]string{"message": every.String()}
	for _, format := range []string{"json", "yaml"} {
		var b bytes.Buffer
		if err := (&Output{Format: format}).Print(Visible(&b), Style{}, "Thing", object); err != nil {
			t.Errorf("-o %s: %v", format, err)
			continue
		}
		for r := range strings.SplitSeq("\x00 \x07 \x1b \x7f \u0085 \u009b", " ") {
			if strings.Contains(b.String(), r) {
				t.Errorf("-o %s prints %q as it is", format, r)
			}
		}
		var got any
		switch format {
		case "json":
			var parsed map[string]any
			if err := json.Unmarshal(b.Bytes(), &parsed); err != nil {
				t.Error(err)
			}
			got = parsed["message"]
		case "yaml":
			var parsed map[string]any
			if err := yaml.Unmarshal(b.Bytes(), &parsed); err != nil {
				t.Errorf("-o %s: %v", format, err)
			}
			got = parsed["message"]
		}
		if got != every.String() {
			t.Errorf("-o %s changes the text to %q", format, got)
		}
	}
}
