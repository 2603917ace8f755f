// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

type Benchmark struct {
	Package string `json:"package"`
	// Name has neither the prefix Benchmark nor the suffix of GOMAXPROCS.
	Name string `json:"name"`
	// Procs is 1 where the line names none.
	Procs      int                `json:"procs"`
	Iterations int64              `json:"iterations"`
	Values     map[string]float64 `json:"values"`
}

// Parse reads the format of Go's proposal 14313, of the configuration lines only the package. Other lines
// are left out, as the format demands.
func Parse(in io.Reader) ([]Benchmark, error) {
	var out []Benchmark
	pkg := ""
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		if value, ok := strings.CutPrefix(line, "pkg: "); ok {
			pkg = strings.TrimSpace(value)
			continue
		}
		b, ok, err := parseLine(line)
		if err != nil {
			return out, err
		}
		if ok {
			b.Package = pkg
			out = append(out, b)
		}
	}
	if err := lines.Err(); err != nil {
		return out, fmt.Errorf("read benchmark output: %w", err)
	}
	return out, nil
}

// It returns false for another line.
func parseLine(line string) (Benchmark, bool, error) {
	fields := strings.Fields(line)
	if len(fields) < 4 || len(fields)%2 != 0 || !strings.HasPrefix(fields[0], "Benchmark") {
		return Benchmark{}, false, nil
	}
	b := Benchmark{Values: map[string]float64{}}
	b.Name, b.Procs = splitName(strings.TrimPrefix(fields[0], "Benchmark"))
	var err error
	if b.Iterations, err = strconv.ParseInt(fields[1], 10, 64); err != nil {
		return b, false, nil
	}
	for i := 2; i < len(fields); i += 2 {
		if b.Values[fields[i+1]], err = strconv.ParseFloat(fields[i], 64); err != nil {
			return b, false, fmt.Errorf("benchmark line %q: %w", line, err)
		}
	}
	return b, true, nil
}

func splitName(name string) (string, int) {
	if i := strings.LastIndexByte(name, '-'); i >= 0 {
		if procs, err := strconv.Atoi(name[i+1:]); err == nil && procs > 0 {
			return name[:i], procs
		}
	}
	return name, 1
}
