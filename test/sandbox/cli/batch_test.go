// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox"
)

func TestBatches(t *testing.T) {
	plain := sandbox.Scenario{}
	wide := sandbox.Scenario{Shape: func(s *sandbox.Shape) { s.Nodes = 5 }}
	with := func(s sandbox.Scenario, name string, takes time.Duration) sandbox.Scenario {
		s.Name, s.Takes = name, takes
		return s
	}
	exclusive := with(plain, "exclusive", 0)
	exclusive.Exclusive = true
	sandboxes := with(plain, "bare", 0)
	sandboxes.Bare = true
	var jobs []job
	for _, j := range []job{
		{scenario: with(plain, "a", 0), mode: sandbox.Standalone},
		{scenario: with(plain, "b", 0), mode: sandbox.Standalone},
		{scenario: with(wide, "wide", 20*time.Second), mode: sandbox.Standalone},
		{scenario: exclusive, mode: sandbox.Standalone},
		{scenario: with(plain, "c", 50*time.Second), mode: sandbox.Standalone},
		{scenario: sandboxes, mode: sandbox.Standalone},
		{scenario: with(plain, "d", 30*time.Second), mode: sandbox.Standalone},
		{scenario: with(plain, "e", 3*time.Minute), mode: sandbox.Standalone},
		{scenario: with(plain, "a", 0), mode: sandbox.Upstream},
	} {
		jobs = append(jobs, j)
	}
	var got []string
	for _, b := range batches(jobs) {
		var names []string
		for _, j := range b {
			names = append(names, j.scenario.Name+"/"+string(j.mode))
		}
		got = append(got, strings.Join(names, " "))
	}
	want := []string{
		"e/standalone",
		"a/standalone b/standalone c/standalone",
		"d/standalone",
		"wide/standalone",
		"exclusive/standalone",
		"bare/standalone",
		"a/upstream",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
