// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"

	"github.com/moorage-dev/moorage/test/internal/breaks"
	"github.com/moorage-dev/moorage/test/sandbox"
)

// guard is a rule, how to remove it, and the scenario that must notice.
type guard struct {
	// Scenario must fail.
	Scenario string
	// Mode is the mode in which it must fail; empty: standalone.
	Mode sandbox.Mode
	// Rule is the removed rule, in words; docs/internals/invariants.md has I1 to I9.
	Rule string
	// Breaks remove it.
	Breaks []breaks.Break
	// Expect lists the reasons of which one must be part of the failure: of its
	// error, or of the rule of a violation.
	Expect []string
}

// mode is the mode in which the scenario must fail.
func (g guard) mode() sandbox.Mode { return cmp.Or(g.Mode, sandbox.Standalone) }

// name names the guard, and its rule in the sandbox that is built.
func (g guard) name() string { return fmt.Sprintf("%s without %q", g.Scenario, g.Rule) }

// rulesOf has the breaks of each guard.
func rulesOf(list []guard) map[string][]breaks.Break {
	rules := map[string][]breaks.Break{}
	for _, g := range list {
		rules[g.name()] = g.Breaks
	}
	return rules
}
