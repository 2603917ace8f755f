// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// guard is a rule, how to remove it, and the scenario that must notice.
type guard struct {
	// Scenario is the one that must fail.
	Scenario string
	// Mode is in which mode it must; empty: standalone.
	Mode sandbox.Mode
	// Rule is what is removed, in words; I1 to I9 are those of docs/internals/invariants.md.
	Rule string
	// Edits remove it: one, unless the rule is kept in two places.
	Edits []edit
	// Expect lists the reasons of which one must be part of the failure: of its
	// error, or of the rule of a violation.
	Expect []string
}

// mode is in which mode the scenario must fail.
func (g guard) mode() sandbox.Mode { return cmp.Or(g.Mode, sandbox.Standalone) }

// edit replaces a piece of a source file that occurs there exactly once.
type edit struct {
	File, Old, New string
}

// apply returns a file's text with the edit made.
func (e edit) apply(text string) (string, error) {
	if n := strings.Count(text, e.Old); n != 1 {
		return "", fmt.Errorf("%s has %d times, not once:\n%s\nchange the guard as the rule has changed", e.File, n, e.Old)
	}
	return strings.Replace(text, e.Old, e.New, 1), nil
}
