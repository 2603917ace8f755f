// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/test/sandbox"
)

func bare(name string, outcome error, modes ...sandbox.Mode) sandbox.Scenario {
	return sandbox.Scenario{
		Name: name, Doc: "Tells " + name + ".", Modes: modes, Bare: true,
		Run: func(context.Context, *sandbox.Env) error { return outcome },
	}
}

func testConfig() Config {
	old := bare("old", nil, sandbox.Cooperative)
	old.Shape = func(shape *sandbox.Shape) { shape.Kubernetes = "1.35" }
	return Config{
		Scenarios: []sandbox.Scenario{
			old,
			bare("fine", nil, sandbox.Standalone, sandbox.Upstream),
			bare("tuned", nil, sandbox.UpstreamTuned),
			bare("broken", errors.New("the bridge is down"), sandbox.Upstream),
			{Name: "panics", Modes: []sandbox.Mode{sandbox.Upstream}, Bare: true, Run: func(context.Context, *sandbox.Env) error { panic("oops") }},
		},
		Demo: []sandbox.Scene{{Title: "All is well", Scenario: bare("fine", nil, sandbox.Standalone)}},
	}
}

func execute(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := newRootCommand(testConfig())
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append([]string{"--dir", t.TempDir()}, args...))
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string // in the output, or in the error if there is no output
		ok   bool
	}{
		"no such command":  {[]string{"rnu"}, `unknown command "rnu" for moorage-sandbox. Did you mean "run"?`, false},
		"no such fault":    {[]string{"fault", "poweroff", "worker-1"}, `unknown command "poweroff" for moorage-sandbox fault. Did you mean "power-off"?`, false},
		"no such scenario": {[]string{"list", "nothing"}, `no scenario has "nothing" in its name`, false},
		"one of the list":  {[]string{"list", "tuned"}, "tuned (upstream-tuned)", true},
		"every mode":       {[]string{"run", "fine"}, "2 passed, 0 failed", true},
		"one mode":         {[]string{"run", "fine", "--mode", "upstream"}, "1 passed, 0 failed", true},
		"wrong mode":       {[]string{"run", "tuned", "--mode", "upstream"}, "does not run in mode upstream", false},
		"all in a mode":    {[]string{"run", "--all", "--mode", "upstream-tuned"}, "1 passed, 0 failed", true},
		"all of a release": {[]string{"run", "--all", "--kubernetes", "1.34,1.35"}, "1 passed, 0 failed", true},
		"all of its own":   {[]string{"run", "--all", "--kubernetes", "own", "--mode", "upstream-tuned"}, "1 passed, 0 failed", true},
		"no such release":  {[]string{"run", "--all", "--kubernetes", "1.36"}, "no scenario to run", false},
		"a failure":        {[]string{"run", "fine", "broken", "--mode", "upstream"}, "1 passed, 1 failed", false},
		"its reason":       {[]string{"run", "broken"}, "the bridge is down", false},
		"a panic":          {[]string{"run", "panics"}, "0 passed, 1 failed", false},
		"unknown":          {[]string{"run", "nothing"}, "see `list`", false},
		"none":             {[]string{"run"}, "which scenario", false},
		"unknown mode":     {[]string{"run", "fine", "--mode", "solo"}, "standalone", false},
		"cooperative":      {[]string{"run", "fine", "--mode", "cooperative"}, "does not run in mode cooperative", false},
		"all but one":      {[]string{"run", "--all", "--mode", "upstream", "--except", "broken,panics"}, "0 failed", true},
		"but no such":      {[]string{"run", "--all", "--except", "nothing"}, "--except", false},
		"except alone":     {[]string{"run", "fine", "--except", "broken"}, "goes with --all", false},
		"name and all":     {[]string{"run", "fine", "--all"}, "not both", false},
		"the seed is told": {[]string{"run", "broken", "--seed", "42"}, "seed 42", false},
		"demo":             {[]string{"demo"}, "All is well", true},
		"list":             {[]string{"list"}, "Tells fine.", true},
		"no cluster":       {[]string{"judge"}, "start one with `up`", false},
		"no fault target":  {[]string{"fault", "kill", "etcd"}, "start one with `up`", false},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := execute(t, c.args...)
			if (err == nil) != c.ok {
				t.Errorf("error %v", err)
			}
			if err != nil && !errors.Is(err, ErrReported) {
				out += err.Error()
			}
			if !strings.Contains(out, c.want) {
				t.Errorf("printed %q, want %q", out, c.want)
			}
		})
	}
}

func TestRunPrintsJSON(t *testing.T) {
	out, err := execute(t, "--json", "run", "fine", "broken", "--seed", "7")
	if !errors.Is(err, ErrReported) {
		t.Fatalf("error %v", err)
	}
	var got summary
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %q", err, out)
	}
	if got.Passed != 2 || got.Failed != 1 || len(got.Results) != 3 {
		t.Fatalf("got %+v", got)
	}
	if last := got.Results[2]; last.Error != "the bridge is down" || last.Passed || last.Seed != 7 {
		t.Fatalf("got %+v", last)
	}
}
