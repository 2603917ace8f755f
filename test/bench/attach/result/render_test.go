// SPDX-License-Identifier: Apache-2.0

package result

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write the stored result into docs/benchmarks-attach.md")

const (
	document = "../../../../docs/benchmarks-attach.md"
	stored   = "../../results/attach.json"
)

func example() Result {
	return Result{
		Schema: Schema, Command: "bench", Started: time.Unix(0, 0).UTC(),
		Runs: []Run{
			{
				Setup: "moorage", Volumes: 4, Nodes: 2, LatencySeconds: 1,
				Attach: &Half{
					Done: 4, CalledSeconds: 1.5, SettledSeconds: 2, Writes: map[string]int{"patch volumeattachments/status": 4, "patch persistentvolumes": 4},
					Calls: map[string]int{"ControllerPublishVolume": 4}, CPUSeconds: map[string]float64{"csi-attacher": 0.25},
				},
				PeakMiB: map[string]float64{"csi-attacher": 30},
			},
			{Setup: "upstream", Volumes: 4, Nodes: 2, Failed: "no room"},
		},
	}
}

func TestRender(t *testing.T) {
	got := Render(example())
	for _, want := range []string{
		"Measured by `bench` on 1 January 1970",
		"| 4 volumes, driver 1 s | moorage  | 4 of 4 |              1.5 s |               2.0 s |        2.0 |              2.00 |             1.00 |",
		"0.25", "30 MiB", "4 volumes, driver 0 s, upstream failed: no room",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

func TestFilesSurvive(t *testing.T) {
	data, err := example().Encode()
	if err != nil {
		t.Fatal(err)
	}
	r, err := Decode(data)
	if err != nil || Render(r) != Render(example()) {
		t.Errorf("read again it is %+v, %v", r, err)
	}
	if _, err := Decode([]byte(`{"schema":"another"}`)); err == nil {
		t.Error("a file of another schema was read")
	}
}

// The page shows what is stored.
func TestDocumentShowsTheResult(t *testing.T) {
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(stored)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Within(string(text), r)
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Error("docs/benchmarks-attach.md does not show test/bench/results/attach.json: run this test with -rewrite")
	}
}
