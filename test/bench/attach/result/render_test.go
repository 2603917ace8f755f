// SPDX-License-Identifier: Apache-2.0

package result

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
)

var rewrite = flag.Bool("rewrite", false, "write the stored result into docs/internals/benchmarks-attach.md")

const (
	document = "../../../../docs/internals/benchmarks-attach.md"
	stored   = "../../results/attach.json"
)

func head(command string) record.Head {
	return record.Head{Command: command, Started: time.Unix(0, 0).UTC()}
}

func example() Result {
	four := Case{Setup: "moorage", Volumes: 4, Nodes: 2, LatencySeconds: 1, Parallel: 3}
	run := func(c Case, settled float64) Run {
		return Run{
			Case: c,
			Attach: &Half{
				Done: 4, AskedSeconds: 0.2, BegunSeconds: 0.5, CalledSeconds: 2.5, SettledSeconds: settled,
				Writes: map[string]int{"patch volumeattachments/status": 4, "patch persistentvolumes": 4},
				Calls:  map[string]int{"ControllerPublishVolume": 4}, CPUSeconds: map[string]float64{"csi-attacher": 0.25},
			},
			PeakMiB: map[string]float64{"csi-attacher": 30},
		}
	}
	stock := four
	stock.Setup = "upstream"
	failed := run(Case{Setup: "upstream", Volumes: 4, Nodes: 2}, 1)
	failed.Failed = "no room"
	return Result{
		Schema: Schema,
		Sessions: []Session{
			{Head: head("first"), Runs: []Run{run(four, 9), run(stock, 3)}},
			{Head: head("second"), Runs: []Run{run(four, 5), run(four, 3), run(four, 2.6), failed}},
			{Head: head("third")},
		},
	}
}

func TestRender(t *testing.T) {
	got := Render(example())
	for _, want := range []string{
		"A: Measured by `first` on 1 January 1970", "B: Measured by `second`",
		"| 4 volumes, driver 1 s, 3 at a time | upstream | 4 of 4 |          0.2 s |           0.5 s |              2.5 s |          3.0 s |          2.0 s |            1.50 |        1.3 |              2.00 |             1.00 |            1 A |",
		"| 4 volumes, driver 1 s, 3 at a time | moorage  | 4 of 4 |          0.2 s |           0.5 s |              2.5 s |          3.0 s |          2.0 s |            1.50 |        1.3 |              2.00 |             1.00 | 3 B: 2.6–5.0 s |",
		"0.25", " 30 |", "4 volumes, driver 0 s, upstream failed: no room",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	for _, not := range []string{"third", "9.0 s", "4 volumes, driver 0 s |"} {
		if strings.Contains(got, not) {
			t.Errorf("%q is in\n%s", not, got)
		}
	}
}

func TestFilesSurvive(t *testing.T) {
	name := filepath.Join(t.TempDir(), "result.json")
	if err := record.Save(name, example()); err != nil {
		t.Fatal(err)
	}
	r, err := Read(name)
	if err != nil || Render(r) != Render(example()) {
		t.Errorf("read again it is %+v, %v", r, err)
	}
}

func TestDocumentShowsTheResult(t *testing.T) {
	r, err := Read(stored)
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := Page().Write(document, Render(r)); err != nil {
			t.Fatal(err)
		}
	}
	if err := Page().Shows(document, Render(r)); err != nil {
		t.Errorf("%v, or run this test with -rewrite", err)
	}
}
