// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"slices"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const Schema = "moorage.dev/bench-chaos/v1"

// Result has the last run of each mode and variant.
type Result struct {
	Schema string `json:"schema"`
	Runs   []Run  `json:"runs"`
}

type Run struct {
	record.Head
	Mode sandbox.Mode `json:"mode"`
	Seed uint64       `json:"seed"`
	// Lenient: a second node and too many disks are permitted. Most clouds refuse that.
	Lenient bool `json:"lenient,omitempty"`
	// WithoutNode: moorage-node does not run, though the scenario has it.
	WithoutNode bool `json:"withoutNode,omitempty"`
	// Seconds is from the first pod until nothing was left, or the wait was given up.
	Seconds float64        `json:"seconds"`
	Failed  string         `json:"failed,omitempty"`
	Calls   int            `json:"calls"`
	Counts  map[string]int `json:"counts"`
	Steps   []sandbox.Step `json:"steps,omitempty"`
	// Broken counts violations by rule.
	Broken map[diskapi.Rule]int `json:"broken,omitempty"`
	// Happened counts the violations that were answered with success.
	Happened map[diskapi.Rule]int `json:"happened,omitempty"`
	First    []diskapi.Violation  `json:"first,omitempty"`
	Hanging  []string             `json:"hanging,omitempty"`
	Left     []string             `json:"left,omitempty"`
}

func Of(head record.Head, r sandbox.Result) Run {
	run := Run{
		Head: head, Mode: r.Mode, Seed: r.Seed, Seconds: r.Seconds, Failed: r.Error, Calls: r.Calls,
		Counts: r.Counts, Steps: r.Steps, Broken: r.Broken, Happened: r.Happened, Hanging: r.Hanging, Left: r.Left,
	}
	seen := map[diskapi.Rule]bool{}
	for _, v := range slices.Concat(r.Excused, r.Violations) {
		if !seen[v.Rule] {
			seen[v.Rule] = true
			run.First = append(run.First, v)
		}
	}
	return run
}

// Add replaces the last run of the same mode and variant.
func (r *Result) Add(run Run) {
	r.Schema = Schema
	r.Runs = slices.DeleteFunc(r.Runs, func(old Run) bool { return old.name() == run.name() })
	r.Runs = append(r.Runs, run)
	slices.SortFunc(r.Runs, func(a, b Run) int {
		return cmp.Or(falseFirst(a.Lenient, b.Lenient), cmp.Compare(slices.Index(sandbox.Modes(), a.Mode), slices.Index(sandbox.Modes(), b.Mode)), falseFirst(a.WithoutNode, b.WithoutNode))
	})
}

func falseFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func Read(name string) (Result, error) { return record.Read[Result](name, Schema) }
