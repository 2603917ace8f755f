// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
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
	evidence, fix := err.Error(), "Run doctor with the right to read "+what+", or check it by hand."
	if apierrors.IsForbidden(err) {
		evidence = cluster.Refused(err)
	} else if text := unexpected("The request for "+what, err); text != "" {
		evidence = text
		fix = "Run doctor again. If it stays, see what the log of the API server says of that request, or of what stands before it, such as a proxy, and check it by hand."
	}
	return []Finding{found(Unknown, evidence, fix, "%s could not be read", what)}
}

// unexpected words an answer that is none of the Kubernetes API's, such as a proxy's, which
// client-go calls unknown: to which request, with which HTTP status, and what it says. Empty
// for other errors.
func unexpected(request string, err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeUnexpectedServerResponse {
			continue
		}
		text := fmt.Sprintf("%s was answered with HTTP status %d", request, status.Status().Code)
		if said, _, _ := strings.Cut(strings.TrimSpace(cause.Message), "\n"); said != "" && said != "unknown" {
			text += ": " + said
		}
		return text
	}
	return ""
}
