// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

type cell struct {
	page, heading, row string
	column             int // 1 is the first after the row's name
}

const (
	summaryPage = "internals/benchmarks-summary.md"

	attachPage = "internals/benchmarks.md"
	placePage  = "internals/benchmarks-scheduler.md"
	nodePage   = "internals/node-at-rest.md"

	placed      = "<!-- results: begin; written by `make bench-scheduler`, not by hand -->"
	nodeResults = "<!-- results: begin; written by `moorage-sandbox bench-node --render`, not by hand -->"
	madeBefore  = "PremadeCSIPVsRWO 500Nodes"
	loadedNodes = "LoadedNodesCSIPVsRWO 500Nodes"
)

// quotes are measured sentences of users' pages, with their cells.
var quotes = []struct {
	page, says string
	from       []cell
}{
	{summaryPage, "volumes made before, empty nodes | %s | %s |", []cell{{placePage, placed, madeBefore, 4}, {placePage, placed, madeBefore, 5}}},
	{summaryPage, "nodes with 30 volumes each | %s | %s |", []cell{{placePage, placed, loadedNodes, 4}, {placePage, placed, loadedNodes, 5}}},
	{summaryPage, "p99 of a scheduling attempt there | %s | %s |", []cell{{placePage, placed, loadedNodes, 7}, {placePage, placed, loadedNodes, 8}}},
	{"operate/modes.md", "it took %s, had %s of memory of its own", []cell{{nodePage, nodeResults, "– **that is**", 1}, {nodePage, nodeResults, "**memory of its own** (RssAnon)", 1}}},
	{"operate/modes.md", "and %s of its program in memory", []cell{{nodePage, nodeResults, "its program, as far as it is in memory (RssFile)", 1}}},
	{"operate/modes.md", "after %s in the median, and %s at most", []cell{{nodePage, nodeResults, "from a mount or unmount until a watch shows it, median", 1}, {nodePage, nodeResults, "– the longest", 1}}},
	{"operate/quickstart.md", "about %s MiB of the heap are live", []cell{{attachPage, "## The core", "observe Start", 5}}},
}

func TestMeasuredNumbersAreThoseOfTheResults(t *testing.T) {
	for _, q := range quotes {
		var numbers []any
		for _, c := range q.from {
			numbers = append(numbers, c.read(t))
		}
		if want := fmt.Sprintf(q.says, numbers...); !strings.Contains(text(t, q.page), want) {
			t.Errorf("%s does not say %q", q.page, want)
		}
	}
}

// The runs had many nodes, at rest.
func TestTheCostIsMeasured(t *testing.T) {
	var result struct {
		Runs []struct {
			Mode           string
			Nodes, Volumes int
			Rest           struct {
				Seconds                 float64
				CPUSeconds, ResidentMiB map[string]float64
			}
		}
	}
	if err := json.Unmarshal([]byte(text(t, "../test/bench/results/scale-1000.json")), &result); err != nil {
		t.Fatal(err)
	}
	r := result.Runs[0]
	const controller, scheduler = "moorage-controller", "moorage-scheduler"
	want := fmt.Sprintf("%d,%03d volumes on %d,%03d nodes, the leading controller took %.0f MiB of memory and the scheduler %.0f MiB, and both together a quarter of a core",
		r.Volumes/1000, r.Volumes%1000, r.Nodes/1000, r.Nodes%1000, r.Rest.ResidentMiB[controller], r.Rest.ResidentMiB[scheduler])
	if !strings.Contains(text(t, "../README.md"), want) {
		t.Errorf("README.md does not say %q", want)
	}
	if cores := (r.Rest.CPUSeconds[controller] + r.Rest.CPUSeconds[scheduler]) / r.Rest.Seconds; r.Mode != "standalone" || math.Abs(cores-0.25) > 0.02 {
		t.Errorf("in mode %s they took %.2f cores", r.Mode, cores)
	}
}

func TestDrainsAreMeasured(t *testing.T) {
	drains := runs(t, "drain")
	seconds := func(run int, what string) string {
		return fmt.Sprintf("%.1f s", float64(drains[run].Counts["ms "+what])/1000)
	}
	const away, whole = "away, on average", "until all ran elsewhere"
	want := fmt.Sprintf("a pod was away for %s on average, and for %s with kubectl's drain. The whole took %s and %s",
		seconds(0, away), seconds(1, away), seconds(0, whole), seconds(1, whole))
	if !strings.Contains(text(t, "operate/drains.md"), want) {
		t.Errorf("operate/drains.md does not say %q", want)
	}
}

type counted struct {
	Mode   string
	Counts map[string]int
}

func runs(t *testing.T, name string) []counted {
	t.Helper()
	var file struct{ Runs []counted }
	if err := json.Unmarshal([]byte(text(t, "../test/bench/results/"+name+".json")), &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Runs) < 2 || file.Runs[0].Mode != "standalone" || file.Runs[1].Mode != "upstream" {
		t.Fatalf("%s.json does not begin with a run of Moorage and one of upstream", name)
	}
	return file.Runs
}

func TestFramesAreMeasured(t *testing.T) {
	var file struct {
		Benchmarks []struct {
			Name   string
			Values map[string]float64
		}
	}
	if err := json.Unmarshal([]byte(text(t, "../test/bench/web/results/web.json")), &file); err != nil {
		t.Fatal(err)
	}
	frames := map[string]map[string]float64{}
	for _, b := range file.Benchmarks {
		frames[b.Name] = b.Values
	}
	desktop, phone := frames["Frames/desktop"], frames["Frames/phone"]
	const between = "ms-between-frames-p"
	want := fmt.Sprintf("95 of 100 frames of a desktop's window come within %v ms, which is 60 a second, and 99 within %v ms; in a phone's window 95 within %v ms. The page's thread computes for %.0f ms in half of the frames",
		desktop[between+"95"], desktop[between+"99"], phone[between+"95"], desktop["ms-computed/frame-p50"])
	if !strings.Contains(text(t, "internals/benchmarks-summary.md"), want) {
		t.Errorf("internals/benchmarks-summary.md does not say %q", want)
	}
}

func attachRuns(t *testing.T, latency string, files ...string) map[string][]attachRun {
	t.Helper()
	runs := map[string][]attachRun{}
	for _, file := range files {
		var result struct{ Runs []attachRun }
		if err := json.Unmarshal([]byte(text(t, "../test/bench/results/"+file)), &result); err != nil {
			t.Fatal(err)
		}
		for _, r := range result.Runs {
			if r.Case.Attach == latency {
				runs[r.Setup] = append(runs[r.Setup], r)
			}
		}
	}
	return runs
}

type attachRun struct {
	Setup string
	Case  struct {
		Pods   float64
		Attach string
	}
	AllRunningMs               float64
	SamplesMs                  map[string][]float64
	AttachWrites, DetachWrites []struct{ Count float64 }
}

// nearest-rank median, in seconds
func (r *attachRun) median(step string) string {
	list := slices.Sorted(slices.Values(r.SamplesMs[step]))
	return fmt.Sprintf("%.2f s", list[(len(list)+1)/2-1]/1000)
}

func (r *attachRun) perPod(writes []struct{ Count float64 }) string {
	sum := 0.0
	for _, w := range writes {
		sum += w.Count
	}
	return fmt.Sprintf("%.1f", sum/r.Case.Pods)
}

// upstream's number first, then Moorage's
func TestNumbersOfBurstsAreThoseOfTheRuns(t *testing.T) {
	const page = summaryPage
	burst, first := attachRuns(t, "1s", "burst-200.json"), attachRuns(t, "0s", "first-use.json")
	step := func(name string) func(*attachRun) string { return func(r *attachRun) string { return r.median(name) } }
	for _, says := range []struct {
		runs  map[string][]attachRun
		row   string
		value func(*attachRun) string
	}{
		{burst, "created → bound, median", step("createdToBound")},
		{burst, "bound → attach called, median", step("boundToPublish")},
		{burst, "created → running, median", step("createdToRunning")},
		{burst, "all 200 run after", func(r *attachRun) string { return fmt.Sprintf("%.1f s", r.AllRunningMs/1000) }},
		{burst, "API writes per pod until it runs", func(r *attachRun) string { return r.perPod(r.AttachWrites) }},
		{burst, "API writes per pod until its volume is detached", func(r *attachRun) string { return r.perPod(r.DetachWrites) }},
		{first, "created → running, median, volume provisioned on first use", step("createdToRunning")},
	} {
		want := says.row
		for _, setup := range []string{"upstream-tuned", "standalone-tuned"} {
			var values []string
			for _, r := range says.runs[setup] {
				values = append(values, says.value(&r))
			}
			want += " | " + strings.Join(values, ", ")
		}
		if !strings.Contains(text(t, page), want+" |") {
			t.Errorf("%s does not say %q", page, want)
		}
	}
}

// upstream's number first, then Moorage's
func TestNumbersOfManyNodesAreThoseOfTheRuns(t *testing.T) {
	var result struct {
		Runs []struct {
			Mode  string
			Storm struct {
				Volumes        int
				RunningSeconds float64
				Bystanders     struct{ Running []float64 }
			}
		}
	}
	if err := json.Unmarshal([]byte(text(t, "../test/bench/results/scale-1000.json")), &result); err != nil {
		t.Fatal(err)
	}
	rows := []string{"all 1,336 pods run elsewhere after", "created → running, median", "– p99"}
	for _, mode := range []string{"upstream-tuned", "standalone"} {
		for _, r := range result.Runs {
			if r.Mode != mode {
				continue
			}
			if r.Storm.Volumes != 1336 {
				t.Errorf("%d volumes", r.Storm.Volumes)
			}
			waits := slices.Sorted(slices.Values(r.Storm.Bystanders.Running))
			for i, value := range []float64{r.Storm.RunningSeconds, waits[(len(waits)+1)/2-1], waits[(99*len(waits)+99)/100-1]} {
				rows[i] += fmt.Sprintf(" | %.3g s", value)
			}
		}
	}
	for _, want := range rows {
		if !strings.Contains(text(t, summaryPage), want+" |") {
			t.Errorf("%s does not say %q", summaryPage, want)
		}
	}
}

func (c cell) read(t *testing.T) string {
	t.Helper()
	_, section, found := strings.Cut(text(t, c.page), "\n"+c.heading+"\n")
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) > c.column+1 && strings.TrimSpace(cells[1]) == c.row {
			return strings.TrimSpace(cells[1+c.column])
		}
	}
	t.Fatalf("%s has no row %q with %d cells below %q (which is there: %t)", c.page, c.row, c.column, c.heading, found)
	return ""
}

var lost = map[string]string{
	"aa639aba8227": "internals/benchmarks-attach.md",
}

func TestNamedCommitsExist(t *testing.T) {
	results, err := filepath.Glob(root + "/test/bench/results/*.json")
	web, webErr := filepath.Glob(root + "/test/bench/web/results/*.json")
	if err = errors.Join(err, webErr); err != nil || len(results) < 5 || len(web) == 0 {
		t.Fatalf("only %v and %v are result files: %v", results, web, err)
	}
	results = append(results, web...)
	for page, why := range lost {
		if !strings.Contains(text(t, why), "names a commit that is not in the history") {
			t.Errorf("%s does not say why %s is not in the history", why, page)
		}
	}
	whole := wholeHistory(t)
	commit := regexp.MustCompile(`(?:"commit": "|\bcommit )([0-9a-f]{7,40})\b`)
	named := 0
	for _, file := range slices.Concat(results, pages(t)) {
		for _, m := range commit.FindAllStringSubmatch(text(t, file), -1) {
			named++
			if lost[m[1][:min(12, len(m[1]))]] != "" || !whole {
				continue
			}
			if err := exec.CommandContext(t.Context(), "git", "-C", root, "merge-base", "--is-ancestor", m[1], "HEAD").Run(); err != nil {
				t.Errorf("%s names commit %s, which is not in the history", file, m[1])
			}
		}
	}
	if named < 10 {
		t.Errorf("only %d commits are found", named)
	}
}

// A release's archive and a shallow clone lack the commits.
func wholeHistory(t *testing.T) bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "rev-parse", "--is-shallow-repository").Output()
	return err == nil && strings.TrimSpace(string(out)) == "false"
}
