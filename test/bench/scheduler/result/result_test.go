// SPDX-License-Identifier: Apache-2.0

package result

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/bench/origin"
)

var rewrite = flag.Bool("rewrite", false, "write what is rendered to the golden file")

func sample() Result {
	run := func(profile string, rate float64) Run {
		r := Run{
			Workload: "SchedulingCSIPVs", Size: "500Nodes", Profile: profile, Pods: 1000, PodsPerSecond: rate, Seconds: 10, CPUSeconds: 12, EtcdSeconds: 3, MachineBusy: 0.875,
			Attempt:   Times{Count: 1000, Mean: time.Millisecond, P50: time.Millisecond, P99: 250 * time.Millisecond},
			Algorithm: Times{Count: 1000, Mean: 1500 * time.Microsecond},
			Writes:    map[string]int{"create pods/binding": 1000, "create events": 1},
			Plugins:   map[string]Times{"NodeVolumeLimits/Filter": {Count: 10, Mean: 29 * time.Microsecond}},
		}
		if profile == Moorage {
			r.Points = map[string]Times{"Filter": {Count: 230000, Mean: 1200, P50: 1152, P99: 3584}}
			r.Plugins, r.Writes["create volumetickets"] = nil, 1003
			r.Failed = map[string]int{"once": 1, "twice": 2, "again": 1, "unlisted": 1}
		}
		return r
	}
	return Result{
		Schema: Schema,
		Head: record.Head{
			Command: "go run ./test/bench/scheduler", Started: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC),
			Source:  origin.Source{Commit: "0123456789abcdef", Go: "go1.26.0"},
			Machine: origin.Machine{Cores: 2, MemoryBytes: 24 << 30, Platform: "linux/amd64"},
		},
		Runs: []Run{
			run(Stock, 80), run(Moorage, 40), run(Moorage, 60), run(Stock, 100),
			{Workload: "PreemptionPVs", Size: "1000Nodes", Profile: Moorage, Failure: "not over after 1m0s\n"},
		},
	}
}

func TestRender(t *testing.T) {
	got := Render(sample())
	golden := filepath.Join("testdata", "rendered.md")
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("rendered as\n%s\nwant\n%s", got, want)
	}
}

func TestResultsSurviveTheirFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "result.json")
	if err := record.Save(name, sample()); err != nil {
		t.Fatal(err)
	}
	got, err := Read(name)
	if err != nil || !reflect.DeepEqual(got, sample()) {
		t.Errorf("read back: %+v (%v)", got, err)
	}
}

func TestFailuresAreTold(t *testing.T) {
	err := sample().Failed()
	if err == nil || err.Error() != "PreemptionPVs 1000Nodes, moorage: not over after 1m0s" {
		t.Errorf("the failures are %v", err)
	}
	if err := (Result{}).Failed(); err != nil {
		t.Errorf("without a run: %v", err)
	}
}

func TestDocumentIsRendered(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..")
	files, err := filepath.Glob(filepath.Join(root, "test", "bench", "results", "scheduler*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no results (%v)", err)
	}
	for _, file := range files {
		r, err := Read(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Page().Shows(filepath.Join(root, "docs", "internals", "benchmarks-scheduler.md"), Render(r)); err != nil {
			name := "test/bench/results/" + filepath.Base(file)
			t.Errorf("%s: %v, or `go run ./test/bench/scheduler --out %s --render docs/internals/benchmarks-scheduler.md`", name, err, name)
		}
	}
}

func TestPageBySize(t *testing.T) {
	large := Result{Runs: []Run{{Size: Size5000}, {Size: Size5000}}}
	mixed := Result{Runs: []Run{{Size: Size5000}, {Size: "500Nodes"}}}
	if large.Page() == mixed.Page() || mixed.Page() != (Result{}).Page() {
		t.Errorf("the pages are %v and %v", large.Page(), mixed.Page())
	}
}

func TestLoopBusy(t *testing.T) {
	run := Run{Seconds: 8, Algorithm: Times{Count: 1000, Mean: 6 * time.Millisecond}}
	if got := run.LoopBusy(); got != 0.75 {
		t.Errorf("busy for %v of the time, want 0.75", got)
	}
	if idle := (Run{Pods: 1}); idle.LoopBusy() != 0 || idle.FirstToLast() != 0 {
		t.Errorf("in no time: busy for %v, and %v pods/s", idle.LoopBusy(), idle.FirstToLast())
	}
}
