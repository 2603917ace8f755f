// SPDX-License-Identifier: Apache-2.0

package report

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/bench/internal/table"
)

const Schema = "moorage.dev/bench-core/v1"

type Result struct {
	Schema string `json:"schema"`
	record.Head
	Benchmarks []Benchmark `json:"benchmarks"`
}

func Read(name string) (Result, error) { return record.Read[Result](name, Schema) }

// Render writes a row per run of a benchmark, and a column per unit.
func Render(r Result) string {
	var out strings.Builder
	out.WriteString(r.Measured() + ".\n\n")
	units := r.units()
	var t table.Table
	t.Add(append([]string{"benchmark"}, units...)...)
	for _, b := range r.Benchmarks {
		row := []string{short(b.Package) + " " + b.Name}
		for _, unit := range units {
			text := "–"
			if v, ok := b.Values[unit]; ok {
				text = format(v)
			}
			row = append(row, text)
		}
		t.Add(row...)
	}
	out.WriteString(t.String())
	return out.String()
}

func (r Result) units() []string {
	set := map[string]bool{}
	for _, b := range r.Benchmarks {
		for unit := range b.Values {
			set[unit] = true
		}
	}
	units := slices.Sorted(maps.Keys(set))
	slices.SortStableFunc(units, func(a, b string) int { return order(a) - order(b) })
	return units
}

func order(unit string) int {
	if i := slices.Index([]string{"ns/op", "B/op", "allocs/op"}, unit); i >= 0 {
		return i
	}
	return 3
}

func short(pkg string) string { return pkg[strings.LastIndexByte(pkg, '/')+1:] }

func format(v float64) string {
	if v < 100 && v != float64(int64(v)) {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
