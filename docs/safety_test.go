// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
)

// counted is what a result file has counted in one run.
type counted struct {
	Mode   string
	Counts map[string]int
}

// The README's table of what is safe says what the result files say.
func TestWhatIsSafeIsMeasured(t *testing.T) {
	kills, faults := 0, 0
	for name, n := range runs(t, "chaos")[0].Counts {
		switch {
		case strings.HasPrefix(name, "kill -9: "):
			kills += n
		case strings.HasPrefix(name, "faults: "):
			faults += n
		}
	}
	off := runs(t, "power-off")
	after := func(run int, what string) string {
		seconds := func(of string) int { return int(math.Round(float64(off[run].Counts["ms, "+what+": "+of]) / 1000)) }
		return fmt.Sprintf("%d s (%d s)", seconds("median"), seconds("worst"))
	}
	cells := func(heading, row string, columns ...int) []any {
		var list []any
		for _, column := range columns {
			list = append(list, cell{"internals/" + heading[:strings.Index(heading, ":")], heading[strings.Index(heading, ":")+1:], row, column}.read(t))
		}
		return list
	}
	const chaos = "chaos.md:<!-- results: begin; written by `moorage-sandbox bench-chaos --render`, not by hand -->"
	const hole = "kubelet-staging-hole.md:<!-- results: begin; written by `moorage-sandbox bench-kubelet-kills --render`, not by hand -->"
	moved := cells(hole, "volumes that were moved", 1, 3)
	staged := cells(hole, "violations of `unpublish-while-staged`", 1, 2, 3)
	for _, want := range []string{
		fmt.Sprintf("%d × `kill -9`, %d faults of the driver", kills, faults),
		fmt.Sprintf("| %s attempts to attach a volume to a second node that the first may still have | %s attempts, refused", cells(chaos, "violations of `two-nodes`", 1, 2)...),
		fmt.Sprintf("| %s × one volume attached to two nodes at once | %s × one volume attached to two nodes at once, 0 × mounted", cells(chaos, "volumes attached to two nodes at once", 3, 4)...),
		fmt.Sprintf("| %s of %s with moorage-node, %s without | %s of %s | as without |", staged[0], moved[0], staged[1], staged[2], moved[1]),
		fmt.Sprintf("out-of-service taint | %s | %s |", after(0, "taint out-of-service"), after(1, "taint out-of-service")),
		fmt.Sprintf("| %s; %s; %s; %s | never |", after(0, "taint of a cloud, unpublishFences"), after(0, "networkFence"), after(0, "fencedCondition"), after(0, "afterUnreachable 1m, unpublishFences")),
	} {
		if !strings.Contains(text(t, "../README.md"), want) {
			t.Errorf("README.md does not say %q", want)
		}
	}
}

// runs are those of a result file.
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

// What the page says of frames is what the result file says.
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
