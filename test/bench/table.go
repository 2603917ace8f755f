// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"strings"
	"unicode/utf8"
)

// table is a Markdown table, padded so that it can be read as plain text too.
// The first column is aligned to the left, the others as said.
type table struct {
	rows [][]string // the first is the head
	// left says which columns besides the first are aligned to the left.
	left map[int]bool
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// String writes the table.
func (t *table) String() string {
	if len(t.rows) == 0 {
		return ""
	}
	widths := make([]int, len(t.rows[0]))
	for _, row := range t.rows {
		for i, text := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(text), 3)
		}
	}
	var out strings.Builder
	for n, row := range t.rows {
		t.line(&out, row, widths)
		if n == 0 {
			t.rule(&out, widths)
		}
	}
	return out.String()
}

func (t *table) isLeft(column int) bool { return column == 0 || t.left[column] }

func (t *table) line(out *strings.Builder, row []string, widths []int) {
	out.WriteByte('|')
	for i, text := range row {
		space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
		if t.isLeft(i) {
			out.WriteString(" " + text + space + " |")
		} else {
			out.WriteString(" " + space + text + " |")
		}
	}
	out.WriteByte('\n')
}

func (t *table) rule(out *strings.Builder, widths []int) {
	out.WriteByte('|')
	for i, width := range widths {
		if t.isLeft(i) {
			out.WriteString(strings.Repeat("-", width+2) + "|")
		} else {
			out.WriteString(strings.Repeat("-", width+1) + ":|")
		}
	}
	out.WriteByte('\n')
}
