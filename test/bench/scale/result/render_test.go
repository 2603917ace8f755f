// SPDX-License-Identifier: Apache-2.0

package result

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/sandbox/audit"
)

func storm(seconds float64, count int) *Storm {
	return &Storm{
		Nodes: 3, Volumes: 10, Pods: 10, AttachedSeconds: seconds, RunningSeconds: seconds + 1, QuietSeconds: seconds + 2, Attached: []float64{1, seconds / 2, seconds},
		Writes:     Writes{All: []audit.Write{{User: "node:*", Verb: "patch", Resource: "nodes/status", Count: count}}, Refused: 4, Again: map[string]int{"update volumeholds": 2}},
		Bystanders: Bystanders{Bound: []float64{1, 0.5, 0.75}, Running: []float64{3, 1, 2}},
	}
}

func TestRender(t *testing.T) {
	load := Load{Nodes: 100, Volumes: 2000, Pods: 2000, LatencySeconds: 1, StatusSeconds: 1, Attacher: "external-attacher"}
	ours := Run{Mode: "standalone", Load: load, BuildSeconds: 10, Storm: storm(4, 25), Rest: Rest{Seconds: 30, Use: Use{
		CPUSeconds: map[string]float64{"kube-controller-manager": 1, "moorage-controller": 0.5}, ResidentMiB: map[string]float64{"moorage-controller": 100},
	}}}
	again := ours
	again.BuildSeconds = 14
	theirs := Run{Mode: "upstream-tuned", Load: load, BuildSeconds: 20, Storm: storm(16, 50), Failed: "drain: it\nfailed", Violations: 2}
	r := Result{Head: record.Head{Command: "c", Started: time.Unix(0, 0).UTC()}, Runs: []Run{theirs, ours, again}}
	text := strings.Join(strings.Fields(Render(r)), " ")
	for _, want := range []string{
		"Measured by `c` on 1 January 1970",
		"### 100 nodes, 2000 volumes of 2000 pods, attach and detach 1 s, status interval 1 s, external-attacher",
		"| | standalone | upstream-tuned | standalone : upstream-tuned |",
		"| all pods run after | 10 s (10–14) | 20 s | 0.50 |",
		"| at rest, a minute: kube-controller-manager and moorage-controller | 3 s (3–3) | – | – |",
		"| memory: moorage-controller | 100 MiB (100–100) | – | – |",
		"| – all attached elsewhere | 4 s (4–4) | 16 s | 0.25 |",
		"| – half of them attached elsewhere | 2 s (2–2) | 8 s | 0.25 |",
		"| – API writes per volume | 2.50 (2.50–2.50) | 5 | 0.50 |",
		"| – writes of the controller refused | 4 (4–4) | 4 | 1.00 |",
		"| – made again for the same object | 2 (2–2) | 2 | 1.00 |",
		"| – bystander: created → bound, p50 | 0.75 s (0.75–0.75) | 0.75 s | 1.00 |",
		"| – bystander: created → attached, p50 | – | – | – |",
		"| – bystander: p99 | 3 s (3–3) | 3 s | 1.00 |",
		"| rolling drain: volumes | – | – | – |",
		"| rules broken, by the judge | 0 (0–0) | 2 | – |",
		"**A run of upstream-tuned failed**: drain: it failed",
		"| node:* | patch nodes/status | 2.50 | 5.00 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, Render(r))
		}
	}
}

const top = "../../../../"

func TestDocumentShowsTheResults(t *testing.T) {
	want, err := RenderFolder(top + "test/bench/results")
	if err != nil {
		t.Fatal(err)
	}
	if err := Page().Shows(top+"docs/internals/benchmarks-scale.md", want); err != nil {
		t.Error(err)
	}
}

func TestRenderFolder(t *testing.T) {
	folder := t.TempDir()
	if text, err := RenderFolder(folder); err != nil || text != none {
		t.Errorf("of no result %q is shown (%v)", text, err)
	}
	for name, nodes := range map[string]int{"scale.json": 100, "scale-1000.json": 1000, "other.json": 7} {
		r := Result{Schema: Schema, Runs: []Run{{Mode: "standalone", Load: Load{Nodes: nodes}}}}
		if err := record.Save(filepath.Join(folder, name), r); err != nil {
			t.Fatal(err)
		}
	}
	text, err := RenderFolder(folder)
	small, large := strings.Index(text, "### 100 nodes"), strings.Index(text, "### 1000 nodes")
	if err != nil || small < 0 || large < 0 || strings.Contains(text, "### 7 nodes") {
		t.Errorf("(%v) %s", err, text)
	}
}
