// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/test/sandbox"
)

func TestPlanAlternates(t *testing.T) {
	cases := Cases()[:3]
	plan := Config{Cases: cases, Setups: QuickSetups(), Repeat: 2}.plan()
	if len(plan) != 18 {
		t.Fatalf("%d runs, want 3 cases × 3 setups × 2", len(plan))
	}
	first := map[Setup]int{}
	for i := 0; i < len(plan); i += 3 {
		first[plan[i].Setup]++
		var setups []Setup
		for _, run := range plan[i : i+3] {
			if run.Case != plan[i].Case || run.Repeat != i/9+1 {
				t.Errorf("run %d is %s of repeat %d: setups of a case must follow each other", i, run.Case.Name(), run.Repeat)
			}
			setups = append(setups, run.Setup)
		}
		if slices.Sort(setups); !slices.Equal(setups, slices.Sorted(slices.Values(QuickSetups()))) {
			t.Errorf("case %s runs in %v", plan[i].Case.Name(), setups)
		}
	}
	for setup, n := range first {
		if n != 2 {
			t.Errorf("%s is first %d times, want 2", setup, n)
		}
	}
}

func TestConfigValidate(t *testing.T) {
	good := Config{Cases: QuickCases(), Setups: QuickSetups(), Repeat: 1, Log: t.Logf}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Config){
		"no case":    func(c *Config) { c.Cases = nil },
		"no setup":   func(c *Config) { c.Setups = nil },
		"no repeat":  func(c *Config) { c.Repeat = 0 },
		"no log":     func(c *Config) { c.Log = nil },
		"a bad case": func(c *Config) { c.Cases = []Case{{}} },
	} {
		bad := good
		spoil(&bad)
		if _, err := Measure(t.Context(), bad); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func broken(t *testing.T) Config {
	return Config{
		Command: "test", Cases: QuickCases(), Setups: []Setup{Upstream, UpstreamTuned}, Repeat: 1, Log: t.Logf,
		Options: sandbox.Options{BaseDir: t.TempDir(), Attacher: filepath.Join(t.TempDir(), "none")},
	}
}

func TestFailedRunsAreInTheResult(t *testing.T) {
	config := broken(t)
	var stored []int
	config.Partial = func(r Result) error { stored = append(stored, len(r.Runs)); return nil }
	r, err := Measure(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Runs) != 2 || len(r.Failures()) != 2 || !strings.Contains(r.Runs[0].Failed, "csi-attacher is missing") {
		t.Errorf("runs %+v", r.Runs)
	}
	if !slices.Equal(stored, []int{1, 2}) {
		t.Errorf("stored after runs %v, want after each", stored)
	}
	if text := Render(r); !strings.Contains(text, "2 of 2 runs failed") {
		t.Errorf("the failures are not in\n%s", text)
	}
}

func TestMeasureEnds(t *testing.T) {
	config := broken(t)
	full := errors.New("disk full")
	config.Partial = func(Result) error { return full }
	if r, err := Measure(t.Context(), config); !errors.Is(err, full) || len(r.Runs) != 1 {
		t.Errorf("%d runs and error %v; want 1 and %v", len(r.Runs), err, full)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Measure(ctx, broken(t)); !errors.Is(err, context.Canceled) || len(r.Runs) != 0 {
		t.Errorf("%d runs and error %v; an interrupted run is no measurement", len(r.Runs), err)
	}
}

type session struct {
	json    bool
	options sandbox.Options
}

func (s session) JSON() bool               { return s.json }
func (s session) Options() sandbox.Options { return s.options }

func runCommand(t *testing.T, asJSON bool, args ...string) (string, error) {
	t.Helper()
	cmd := NewCommand(session{asJSON, broken(t).Options})
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetArgs(append(args, "--attacher", filepath.Join(t.TempDir(), "none")))
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestCommandFailsWhenARunFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "r.json")
	out, err := runCommand(t, true, "--quick", "--pods=3", "--modes=upstream", "--out", file)
	if err == nil || !strings.Contains(err.Error(), "1 of 1 runs failed") {
		t.Errorf("error %v", err)
	}
	printed, err := Decode([]byte(out))
	if err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	stored, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []Result{printed, stored} {
		if len(r.Runs) != 1 || r.Runs[0].Case.Pods != 3 || r.Runs[0].Failed == "" {
			t.Errorf("runs %+v", r.Runs)
		}
		if want := "moorage-sandbox bench --modes=upstream --pods=3 --quick"; r.Command != want {
			t.Errorf("command %q, want %q: paths of this machine are left out", r.Command, want)
		}
	}
}

func TestCommandChooses(t *testing.T) {
	out, err := runCommand(t, false, "--list", "--cases=spaced-*/*/status-10s")
	if err != nil || strings.Count(out, "\n") != 2 || !strings.Contains(out, "spaced-40/attach-1s/status-10s") {
		t.Errorf("listed %q, %v", out, err)
	}
	for _, bad := range [][]string{{"--modes=cooperative"}, {"--cases=nothing"}, {"--pods=-1", "--repeat=0"}} {
		if _, err := runCommand(t, false, bad...); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
}

func TestCommandRenders(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "doc.md")
	if err := os.WriteFile(file, []byte("<!-- results: begin; written by `moorage-sandbox bench --render`, not by hand -->\n<!-- results: end -->\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := sampleResult().Save(filepath.Join(dir, "r.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := runCommand(t, false, "--render", file, "--results", dir); err != nil {
		t.Fatal(err)
	}
	if err := RenderDocument(filepath.Join(dir, "none.md"), dir); err == nil {
		t.Error("a document that is missing is no error")
	}
}

// The result must survive its encoding, with any driver names.
func TestRunKeepsUnknownMetrics(t *testing.T) {
	data, err := json.Marshal(Run{Samples: map[string]Samples{"new": {1}}, Case: QuickCases()[0]})
	if err != nil {
		t.Fatal(err)
	}
	var back Run
	if err := json.Unmarshal(data, &back); err != nil || fmt.Sprint(back.Samples) != "map[new:[1]]" {
		t.Errorf("came back as %+v, %v", back, err)
	}
}
