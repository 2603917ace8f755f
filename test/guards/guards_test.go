// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/moorage-dev/moorage/test/e2e"
	"github.com/moorage-dev/moorage/test/internal/breaks"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const root = "../.."

// Bare scenarios are about the sandbox itself and need no guard. Scenarios on emulated releases share a
// guard.
func TestEveryScenarioHasAGuard(t *testing.T) {
	guarded, modes := map[string]bool{}, map[string]sandbox.Mode{}
	for _, g := range guards() {
		guarded[g.Scenario], modes[g.Scenario] = true, g.mode()
	}
	emulated := guarded["path-1-36"]
	for _, s := range e2e.Scenarios() {
		variant := s.In(sandbox.Standalone).Kubernetes != "" && emulated
		if (s.Supports(sandbox.Standalone) || s.Supports(sandbox.Cooperative)) && !s.Bare && !s.Extra && !variant && !guarded[s.Name] {
			t.Errorf("scenario %s has no guard: add one to the table", s.Name)
		}
		if guarded[s.Name] && !s.Supports(modes[s.Name]) {
			t.Errorf("scenario %s has a guard in mode %s, in which it is not told", s.Name, modes[s.Name])
		}
		delete(guarded, s.Name)
	}
	for name := range guarded {
		t.Errorf("guard %s has no scenario", name)
	}
}

func TestBreaks(t *testing.T) {
	list := guards()
	for _, g := range list {
		if g.Rule == "" || len(g.Breaks) == 0 || len(g.Expect) == 0 {
			t.Errorf("%s needs a rule, a break and an expectation", g.name())
		}
	}
	rules := rulesOf(list)
	if len(rules) < len(list) {
		t.Error("two guards have one name")
	}
	if err := breaks.Check(root, rules); err != nil {
		t.Error(err)
	}
}

func TestAGuardHoldsOnlyForTheExpectedReason(t *testing.T) {
	g := guard{Expect: []string{"over-limit", "too many"}}
	for name, c := range map[string]struct {
		result sandbox.Result
		holds  bool
	}{
		"passed":            {sandbox.Result{Passed: true}, false},
		"expected error":    {sandbox.Result{Error: "there are too many"}, true},
		"expected judgment": {sandbox.Result{Error: "the judge", Violations: []diskapi.Violation{{Rule: diskapi.OverLimit}}}, true},
		"another error":     {sandbox.Result{Error: "no space left on device"}, false},
	} {
		if _, err := g.judge(c.result); (err == nil) != c.holds {
			t.Errorf("%s: %v", name, err)
		}
	}
}
