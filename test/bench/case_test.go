// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox"
)

func TestCasesAreValidAndDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Cases() {
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", c.Name(), err)
		}
		if seen[c.Name()] {
			t.Errorf("two cases are called %s", c.Name())
		}
		seen[c.Name()] = true
	}
	if len(seen) != 12 {
		t.Errorf("%d cases, want 3 loads × 2 latencies × 2 intervals", len(seen))
	}
	for _, c := range QuickCases() {
		if !seen[c.Name()] {
			t.Errorf("%s is not a cut of the whole", c.Name())
		}
	}
}

func TestSpacingMeetsEveryPhase(t *testing.T) {
	for _, c := range Cases() {
		if c.Every == 0 {
			continue
		}
		phases := map[time.Duration]int{}
		for i := range c.Pods {
			phases[time.Duration(i)*c.Every%c.Status/(c.Status/10)]++
		}
		if len(phases) != 10 {
			t.Errorf("%s meets %d tenths of the interval", c.Name(), len(phases))
		}
	}
}

func TestSelect(t *testing.T) {
	names := func(patterns ...string) []string {
		cases, err := Select(Cases(), patterns)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, c := range cases {
			out = append(out, c.Name())
		}
		return out
	}
	if got := names("burst-50/*/status-1s"); !slices.Equal(got, []string{"burst-50/attach-0s/status-1s", "burst-50/attach-1s/status-1s"}) {
		t.Errorf("a pattern selects %v", got)
	}
	if got := names("*/*/status-1s", "burst-50/*/*"); len(got) != 8 {
		t.Errorf("two overlapping patterns select %v", got)
	}
	if got := names(); len(got) != len(Cases()) {
		t.Errorf("no pattern selects %d cases", len(got))
	}
	for _, bad := range []string{"burst-51/*/*", "["} {
		if _, err := Select(Cases(), []string{bad}); err == nil {
			t.Errorf("pattern %q is accepted", bad)
		}
	}
}

func TestCaseValidate(t *testing.T) {
	good := QuickCases()[0]
	for name, spoil := range map[string]func(*Case){
		"no pods":            func(c *Case) { c.Pods = 0 },
		"no nodes":           func(c *Case) { c.Nodes = 0 },
		"negative pace":      func(c *Case) { c.Every = -1 },
		"negative latency":   func(c *Case) { c.Attach = -1 },
		"no status interval": func(c *Case) { c.Status = 0 },
	} {
		bad := good
		spoil(&bad)
		if bad.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestCaseRoundTrip(t *testing.T) {
	for _, c := range append(Cases(), Case{Nodes: 3, Pods: 7, Every: 150 * time.Millisecond, Status: time.Minute}) {
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var back Case
		if err := json.Unmarshal(data, &back); err != nil || back != c {
			t.Errorf("%s comes back as %+v, %v", data, back, err)
		}
	}
	var c Case
	if err := json.Unmarshal([]byte(`{"every":"soon","attach":"0s","status":"1s"}`), &c); err == nil {
		t.Error("a broken duration is accepted")
	}
}

func TestSetups(t *testing.T) {
	all, err := ParseSetups([]string{"standalone", "standalone-tuned", "upstream", "upstream-tuned", "upstream"})
	if err != nil || !slices.Equal(all, Setups()) {
		t.Errorf("got %v, %v", all, err)
	}
	if _, err := ParseSetups([]string{"cooperative"}); err == nil {
		t.Error("a mode that can't be measured is accepted")
	}
	for _, s := range Setups() {
		options, mode := s.apply(sandbox.Options{})
		if ours := s == Standalone || s == StandaloneTuned; ours != mode.Moorage() {
			t.Errorf("%s runs in mode %s", s, mode)
		}
		if tuned := options.TuneAttacher || mode == sandbox.UpstreamTuned; tuned != (s == StandaloneTuned || s == UpstreamTuned) {
			t.Errorf("%s has a tuned attacher: %t", s, tuned)
		}
	}
}
