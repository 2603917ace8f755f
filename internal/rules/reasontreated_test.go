// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestTreatmentOfReasonsIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## How each is treated\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var documented, have []string
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| `") {
			documented = append(documented, strings.TrimSpace(line))
		}
	}
	for _, code := range Codes() {
		have = append(have, "| "+strings.Join(append([]string{"`" + string(code) + "`"}, treatment(Reason{Code: code, Node: "n1", Driver: theDriver})...), " | ")+" |")
	}
	if !slices.Equal(documented, have) {
		t.Errorf("the page says\n%s\nthe code\n%s", strings.Join(documented, "\n"), strings.Join(have, "\n"))
	}
}

func treatment(r Reason) []string {
	effect := map[Outcome]string{Deny: "refuses", Wait: "waits"}[refuse([]Reason{r}).Outcome]
	evict := "no"
	switch {
	case r.LiftedByEviction("n2"):
		evict = "yes"
	case r.LiftedByEviction("n1"):
		evict = "at the node that is named"
	}
	call := map[Call]string{CallNone: "", CallAttach: "attach", CallDetach: "detach"}[CallOf(r.Code)]
	counted := strings.TrimSuffix(r.OfNodes(), r.Message()) + "…"
	return []string{effect, evict, call, counted}
}

// The words are equal for each volume and node: a reporter says them once.
func TestReasonsOfADriver(t *testing.T) {
	same := func(r Reason) bool {
		r.Driver = "disk"
		other := r
		other.Claim, other.Node, other.Used, other.Needed = "other", "n2", 7, 8
		return r.Message() == other.Message() && strings.Contains(r.Message(), "disk")
	}
	for _, code := range Codes() {
		if want := same(Reason{Code: code, Claim: "data", Node: "n1", Used: 1}); want != slices.Contains(DriverCodes(), code) {
			t.Errorf("%s is of a driver alone: %t", code, want)
		}
	}
}
