// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
)

// Severity is how bad a finding is.
type Severity string

// The severities, from the best to the worst.
const (
	OK      Severity = "OK"
	Info    Severity = "Info"    // worth knowing; nothing to do
	Unknown Severity = "Unknown" // could not be checked
	Warning Severity = "Warning" // works, and not as well as it could
	Error   Severity = "Error"   // does not work, or may do harm
)

func (s Severity) rank() int { return slices.Index([]Severity{OK, Info, Unknown, Warning, Error}, s) }

// Finding is what a check has found.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
	// Evidence is what it was seen by.
	Evidence string `json:"evidence,omitempty"`
	// Fix is what to do.
	Fix string `json:"fix,omitempty"`
}

// Report is what doctor prints.
type Report struct {
	Findings []Finding `json:"findings"`
	Worst    Severity  `json:"worst"`
}

// newReport puts the worst first, in the order of the checks among equals.
func newReport(findings []Finding) Report {
	r := Report{Findings: findings, Worst: OK}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return b.Severity.rank() - a.Severity.rank() })
	if len(findings) > 0 {
		r.Worst = r.Findings[0].Severity
	}
	return r
}

func ok(format string, args ...any) Finding {
	return Finding{Severity: OK, Message: fmt.Sprintf(format, args...)}
}

func found(s Severity, evidence, fix, format string, args ...any) Finding {
	return Finding{Severity: s, Message: fmt.Sprintf(format, args...), Evidence: evidence, Fix: fix}
}

// unchecked says that something could not be read.
func unchecked(what string, err error) []Finding {
	return []Finding{found(Unknown, err.Error(), "Run doctor with the right to read "+what+", or check it by hand.", "%s could not be read", what)}
}
