// SPDX-License-Identifier: Apache-2.0

package report

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/bench/origin"
)

var rewrite = flag.Bool("rewrite", false, "write what is rendered to the golden files")

const output = `goos: linux
goarch: amd64
pkg: example.org/a/ledger
cpu: A Processor
BenchmarkApply/nodes=10-2         	 1000000	      1034 ns/op	  967118 events/s	      24 B/op	       1 allocs/op
BenchmarkLog
some words that a benchmark logged
PASS
ok  	example.org/a/ledger	2.2s
pkg: example.org/a/arbiter
BenchmarkFit/pods-per-node-16 	12345678	        97.25 ns/op
BenchmarkFit/pods-per-node 	12345678	        97.5 ns/op	       0 B/op	       0 allocs/op
PASS
`

func parsed(t *testing.T) []Benchmark {
	t.Helper()
	got, err := Parse(strings.NewReader(output))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestParse(t *testing.T) {
	want := []Benchmark{
		{"example.org/a/ledger", "Apply/nodes=10", 2, 1000000, map[string]float64{"ns/op": 1034, "events/s": 967118, "B/op": 24, "allocs/op": 1}},
		{"example.org/a/arbiter", "Fit/pods-per-node", 16, 12345678, map[string]float64{"ns/op": 97.25}},
		{"example.org/a/arbiter", "Fit/pods-per-node", 1, 12345678, map[string]float64{"ns/op": 97.5, "B/op": 0, "allocs/op": 0}},
	}
	if got := parsed(t); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if _, err := Parse(strings.NewReader("BenchmarkX 10 fast ns/op\n")); err == nil {
		t.Error("a value that is no number is accepted")
	}
}

func sample(t *testing.T) Result {
	return Result{
		Schema: Schema,
		Head: record.Head{
			Command: "go test -bench .", Started: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC),
			Source:  origin.Source{Commit: "0123456789abcdef", Go: "go1.26.0"},
			Machine: origin.Machine{Cores: 2, MemoryBytes: 24 << 30, Platform: "linux/amd64"},
		},
		Benchmarks: parsed(t),
	}
}

func TestRoundTrip(t *testing.T) {
	file := filepath.Join(t.TempDir(), "core.json")
	want := sample(t)
	if err := record.Save(file, want); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(file); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("came back as %+v, %v", got, err)
	}
}

func TestRender(t *testing.T) {
	got := Render(sample(t))
	if *rewrite {
		if err := os.WriteFile("testdata/render.golden", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/render.golden")
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("rendered as\n%s", got)
	}
}

func TestFormat(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 3: "3", 97.25: "97.2", 0.0123: "0.0123", 99.96: "100", 100: "100", 999.6: "1,000", 1234567.8: "1,234,568",
	} {
		if got := format(v); got != want {
			t.Errorf("%v is written %q, want %q", v, got, want)
		}
	}
}
