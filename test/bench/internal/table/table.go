// SPDX-License-Identifier: Apache-2.0

// Package table writes Markdown tables that can be read as plain text too.
package table

import (
	"strings"
	"unicode/utf8"
)

// Table's first row is the head; all rows have equal length. The first column is aligned to the left.
type Table struct {
	Left map[int]bool

	rows [][]string
}

func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// String is empty without a row.
func (t *Table) String() string {
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

func (t *Table) isLeft(column int) bool { return column == 0 || t.Left[column] }

func (t *Table) line(out *strings.Builder, row []string, widths []int) {
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

func (t *Table) rule(out *strings.Builder, widths []int) {
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
