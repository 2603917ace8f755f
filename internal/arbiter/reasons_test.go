// SPDX-License-Identifier: Apache-2.0

package arbiter_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/arbiter"
)

// docs/reasons.md explains every code, in the order of the code, and says of
// each what changes it and what to do.
func TestReasonsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		code := strings.Trim(strings.TrimSpace(cells[0]), "`")
		documented = append(documented, code)
		if len(cells) != 4 || slices.ContainsFunc(cells, func(c string) bool { return strings.TrimSpace(c) == "" }) {
			t.Errorf("%s: the row has %d cells, want code, meaning, what changes it, what to do", code, len(cells))
		}
	}
	var codes []string
	for _, code := range arbiter.Codes() {
		codes = append(codes, string(code))
	}
	if !slices.Equal(documented, codes) {
		t.Errorf("docs/reasons.md has\n%v, the code has\n%v", documented, codes)
	}
}

// A code has words of its own.
func TestReasonsHaveMessages(t *testing.T) {
	for _, code := range arbiter.Codes() {
		if message := (arbiter.Reason{Code: code}).Message(); message == string(code) || message == "" {
			t.Errorf("%s has no message", code)
		}
	}
}
