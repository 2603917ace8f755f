// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// docs/operate/policies.md has each type's priority, yield, permission and second node.
func TestTicketTypesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/operate/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "\n| type | priority | yields | permitted | |\n")
	if !ok {
		t.Fatal("the page has no table of types")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var documented, have []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| `") || len(cells) != 5 {
			continue
		}
		for kind := range strings.SplitSeq(strings.TrimPrefix(cells[0], "| "), ", ") {
			documented = append(documented, fmt.Sprintf("%s %s yields=%t namespaced=%t beside=%t timed=%t", strings.Trim(kind, "`"), cells[1],
				cells[2] == "yes", cells[3] == "in the namespace", strings.Contains(cells[4], "at a second node"), strings.Contains(cells[4], "`ttlSeconds`")))
		}
	}
	for _, kind := range ledger.TicketTypes() {
		have = append(have, fmt.Sprintf("%s %d yields=%t namespaced=%t beside=%t timed=%t", kind, kind.Priority(), kind.Yields(), kind.Namespaced(), kind.SharesVolume(), kind.Timed()))
	}
	if !slices.Equal(documented, have) {
		t.Errorf("the page says\n%s\nthe code\n%s", strings.Join(documented, "\n"), strings.Join(have, "\n"))
	}
	if unknown := ledger.TicketType("Urgent"); unknown.Priority() != 0 || unknown.Yields() || unknown.Namespaced() || unknown.SharesVolume() || unknown.Timed() {
		t.Error("a type that is not known has a rank")
	}
}

// A namespace role permits at most a pod's priority.
func TestTenantsDoNotOutrankPods(t *testing.T) {
	for _, kind := range ledger.TicketTypes() {
		if kind.Namespaced() && kind.Priority() > ledger.PodPriority {
			t.Errorf("%s may be used by tenants, and outranks pods", kind)
		}
	}
}
