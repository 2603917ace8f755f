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

// docs/operate/policies.md says of every type its priority, and whether it yields
// its volume or has it at a second node.
func TestTicketTypesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/operate/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(page), "\n| type | priority | yields | |\n")
	if !ok {
		t.Fatal("the page has no table of types")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var documented, have []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		if !strings.HasPrefix(line, "| `") || len(cells) != 4 {
			continue
		}
		for kind := range strings.SplitSeq(strings.TrimPrefix(cells[0], "| "), ", ") {
			documented = append(documented, fmt.Sprintf("%s %s yields=%t beside=%t", strings.Trim(kind, "`"), cells[1],
				cells[2] == "yes", strings.Contains(cells[3], "at a second node")))
		}
	}
	for _, kind := range ledger.TicketTypes() {
		have = append(have, fmt.Sprintf("%s %d yields=%t beside=%t", kind, kind.Priority(), kind.Yields(), kind.SharesVolume()))
	}
	if !slices.Equal(documented, have) {
		t.Errorf("the page says\n%s\nthe code\n%s", strings.Join(documented, "\n"), strings.Join(have, "\n"))
	}
	if unknown := ledger.TicketType("Urgent"); unknown.Priority() != 0 || unknown.Yields() || unknown.SharesVolume() {
		t.Error("a type that is not known has a rank")
	}
}
