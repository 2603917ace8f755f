// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/bench/origin"
)

func sampleResult() Result {
	small, large := Case{Nodes: 10, Pods: 4, Every: spacing, Status: time.Second}, Case{Nodes: 10, Pods: 100, Attach: time.Second, Status: 10 * time.Second}
	at := time.Date(2026, 11, 20, 9, 23, 0, 0, time.UTC)
	series := func(n int, from, step float64) Samples {
		var s Samples
		for i := range n {
			s = append(s, from+float64(i)*step)
		}
		return s
	}
	good := func(c Case, setup Setup, repeat int, base float64) Run {
		return Run{
			Case: c, Setup: setup, Repeat: repeat, Started: at, Kubernetes: "v1.37.1",
			AllRunning: 10 * base, AllDetached: 8 * base,
			Samples: map[string]Samples{
				"createdToBound":      series(c.Pods, 20, 0.5),
				"boundToPublish":      series(c.Pods, base/10-30, 1),
				"publishedToAttached": series(c.Pods, base, 2),
				"attachedToReported":  series(c.Pods, base/5, 1),
				"publishedToStage":    series(c.Pods, base*1.5, 3),
				"createdToRunning":    series(c.Pods, base*3, 25),
				"deletedToDetached":   series(c.Pods, base*2, 5),
				BindingSeen:           series(c.Pods, 0.5, 0.01),
			},
			AttachWrites: []Write{
				{User: "system:kube-scheduler", Verb: "create", Resource: "pods/binding", Count: c.Pods},
				{User: "system:serviceaccount:disk-system:csi-attacher", Verb: "patch", Resource: "volumeattachments/status", Count: c.Pods + 2},
			},
			DetachWrites: []Write{
				{User: "system:serviceaccount:disk-system:csi-attacher", Verb: "patch", Resource: "volumeattachments/status", Count: c.Pods, Failed: c.Pods / 2},
				{User: "system:somebody", Verb: "create", Resource: "surprises", Count: 1},
			},
			CPU: map[string]float64{"etcd": base / 100, kubelets: 2.25, others: 0.5},
		}
	}
	blind := good(small, UpstreamTuned, 1, 300)
	blind.Samples["attachedToReported"] = blind.Samples["attachedToReported"][:1]
	return Result{
		Schema: Schema,
		Head: record.Head{
			Command: "moorage-sandbox bench --repeat=2", Started: at,
			Source:  origin.Source{Commit: "0123456789abcdef0123456789abcdef01234567", Modified: true, Go: "go1.26.0"},
			Machine: origin.Machine{Cores: 2, MemoryBytes: 24 << 30, CPU: "A Processor", Platform: "linux/amd64"},
		},
		Runs: []Run{
			good(small, Standalone, 1, 100), good(small, Upstream, 1, 900), blind,
			good(small, Standalone, 2, 120),
			{Case: small, Setup: Upstream, Repeat: 2, Started: at, Failed: "all pods run: not within 6m0s\nand more"},
			good(large, StandaloneTuned, 1, 100), good(large, UpstreamTuned, 1, 400),
			{Case: large, Setup: Upstream, Repeat: 1, Started: at, Failed: "the judge sees no violation: 1 violation"},
			{Case: Case{Nodes: 10, Pods: 7, Status: time.Second}, Setup: Upstream, Repeat: 1, Started: at, Failed: "no cluster"},
		},
	}
}

func TestResultRoundTrip(t *testing.T) {
	for name, r := range map[string]Result{"full": sampleResult(), "empty": {Schema: Schema}} {
		data, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(data)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, data)
		}
		if !reflect.DeepEqual(back, r) {
			t.Errorf("%s comes back as\n%+v\nwant\n%+v", name, back, r)
		}
		if runs := bytes.Count(data, []byte("\n    {\"case\"")); runs != len(r.Runs) {
			t.Errorf("%s: %d lines of runs, want one for each of %d", name, runs, len(r.Runs))
		}
	}
}

func TestSaveReplacesTheWholeFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "result.json")
	if err := os.WriteFile(file, bytes.Repeat([]byte("old"), 1<<16), 0o644); err != nil {
		t.Fatal(err)
	}
	want := sampleResult()
	if err := want.Save(file); err != nil {
		t.Fatal(err)
	}
	got, err := Load(file)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("loaded %+v, %v", got, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v; want the result alone", entries, err)
	}
	if err := want.Save(filepath.Join(dir, "missing", "result.json")); err == nil {
		t.Error("a folder that is missing is no error")
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, data := range map[string]string{
		"no JSON":        "]",
		"another schema": `{"schema":"moorage.dev/bench/v9","runs":[]}`,
		"a broken run":   `{"schema":"` + Schema + `","runs":[{"case":{"every":"x"}}]}`,
	} {
		if _, err := Decode([]byte(data)); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.json")); err == nil || !strings.Contains(err.Error(), "none.json") {
		t.Errorf("a file that is missing: %v", err)
	}
}
