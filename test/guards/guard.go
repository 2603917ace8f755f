// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"

	"github.com/moorage-dev/moorage/test/internal/breaks"
	"github.com/moorage-dev/moorage/test/sandbox"
)

type guard struct {
	Scenario string
	// Mode is Standalone if it is empty.
	Mode sandbox.Mode
	// Rule is the removed rule, in words; docs/internals/invariants.md has I1 to I9.
	Rule   string
	Breaks []breaks.Break
	// The error, or the rule of a violation, must have a reason of Expect as a part.
	Expect []string
}

func (g guard) mode() sandbox.Mode { return cmp.Or(g.Mode, sandbox.Standalone) }

func (g guard) name() string { return fmt.Sprintf("%s without %q", g.Scenario, g.Rule) }

func rulesOf(list []guard) map[string][]breaks.Break {
	rules := map[string][]breaks.Break{}
	for _, g := range list {
		rules[g.name()] = g.Breaks
	}
	return rules
}
