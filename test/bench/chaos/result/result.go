// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"slices"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// Schema names the format of result files.
const Schema = "moorage.dev/bench-chaos/v1"

// Result has the last run of each mode and variant.
type Result struct {
	Schema string `json:"schema"`
	Runs   []Run  `json:"runs"`
}

// Run is one chaos in one mode, and its origin.
type Run struct {
	record.Head
	Mode sandbox.Mode `json:"mode"`
	Seed uint64       `json:"seed"`
	// Lenient: a disk can be attached to a second node, and past a node's limit. Otherwise disks
	// refuse that, as in most clouds.
	Lenient bool `json:"lenient,omitempty"`
	// WithoutNode: moorage-node does not run, though the scenario has it.
	WithoutNode bool `json:"withoutNode,omitempty"`
	// Seconds from the first pod until nothing was left over, or until the wait was given up.
	Seconds float64 `json:"seconds"`
	// Failed says why a judged run did not pass, or why a run for comparison did not end.
	Failed string `json:"failed,omitempty"`
	// Calls is how many calls the disk service got.
	Calls int `json:"calls"`
	// Counts says how often each act was done, and how many pods run in the end.
	Counts map[string]int `json:"counts"`
	// Steps are the repeated acts, and the outcome of each, in order.
	Steps []sandbox.Step `json:"steps,omitempty"`
	// Broken is how many violations the judge saw, by rule.
	Broken map[diskapi.Rule]int `json:"broken,omitempty"`
	// Happened is how many of these calls were answered with success.
	Happened map[diskapi.Rule]int `json:"happened,omitempty"`
	// First has the first violation of each rule.
	First []diskapi.Violation `json:"first,omitempty"`
	// Hanging are the pods that did not run, and Left the leftovers.
	Hanging []string `json:"hanging,omitempty"`
	Left    []string `json:"left,omitempty"`
}

// Of makes a scenario's outcome a run.
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

// Add puts a run in the place of the last run of its mode and variant.
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

// Read reads a result file.
func Read(name string) (Result, error) { return record.Read[Result](name, Schema) }
