// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/test/docpage"
)

const conformanceDoc = "../../docs/internals/conformance-controller.md"

type likeness string

const (
	same     likeness = "as upstream"
	stricter likeness = "stricter" // Moorage does less, or later, for safety
	better   likeness = "better"   // an improvement for upstream's users
	differs  likeness = "differs"
	others   likeness = "not ours" // the task of the kubelet or the attacher
)

// A scenario is "script NAME" (testdata/NAME.txt), "test FOLDER NAME" (a Go test) or "sandbox NAME" (a
// scenario of test/e2e).
type conformance struct {
	row       string
	upstream  string // the behaviour, and in brackets its upstream test
	likeness  likeness
	ours      string // Moorage's behaviour, and the reason for a difference
	scenarios []string
}

const conformanceIntro = `# What Moorage's controller does where kube-controller-manager's does it

The first table has a row for each behaviour of the attach/detach controller of
Kubernetes 1.37.1 that its own tests assert (reconciler_test.go,
attach_detach_controller_test.go and their neighbours in
pkg/controller/volume/attachdetach, pkg/volume/csi, test/integration/volume,
test/e2e/storage).
The second has the hazards in its source: it loses sight of a volume, waits
forever or touches a used volume. The third lists its duties for users, which
Moorage takes over in Standalone mode.

In brackets are the file and the line of upstream's test: RT is reconciler_test.go,
CT attach_detach_controller_test.go, PT desired_state_of_world_populator_test.go,
ST node_status_updater_test.go, IT attach_detach_test.go of
test/integration/volume, AT csi_attacher_test.go of pkg/volume/csi, and E a file
of test/e2e/storage.

- **as upstream**: the same outcome.
- **stricter**: less, or later, because upstream's way is not safe.
- **better**: the outcome that users want instead.
- **differs**: something else, for the reason given.
- **not ours**: the kubelet or the attacher does it.

A **script** is a file of internal/rules/testdata: commands, and after each
the API writes, the disk calls and what the kubelets do, in their order. It is
played against the core that the controller runs, and an audit and a judge look
on. A **test** runs the controller against an API server in memory. A
**sandbox** scenario runs on a real cluster.

| scenario | command |
|---|---|
| script NAME | ` + "`go test ./internal/rules -run 'TestScripts/NAME$'`" + ` |
| test FOLDER NAME | ` + "`go test ./FOLDER -run 'NAME$'`" + ` |
| sandbox NAME | ` + "`bin/moorage-sandbox run NAME`" + ` |

This file is written by ` + "`go test ./internal/rules -run Conformance -rewrite`" + `.
The test plays every script named here, and fails when a script prints anything
else, when a scenario does not exist, or when this file differs.
The tests run with ` + "`make test`" + `, the sandbox scenarios with ` + "`make scenarios`" + `.
`

func TestConformance(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(conformanceIntro)
	for _, section := range []struct {
		title string
		rows  []conformance
	}{{"What its tests assert", upstreamRows()}, {"What its source shows", hazardRows()}, {"Its duties", dutyRows()}} {
		fmt.Fprintf(&doc, "\n## %s\n\n| # | upstream | | Moorage | scenarios |\n|---|---|---|---|---|\n", section.title)
		for _, c := range section.rows {
			if len(c.scenarios) == 0 || c.ours == "" && c.likeness != same {
				t.Errorf("row %s has no scenario, or does not say what we do", c.row)
			}
			for _, name := range c.scenarios {
				if err := shown(t, name); err != nil {
					t.Errorf("row %s, scenario %q: %v", c.row, name, err)
				}
			}
			fmt.Fprintf(&doc, "| %s | %s | %s | %s | %s |\n", c.row, c.upstream, c.likeness, c.ours, strings.Join(c.scenarios, "; "))
		}
	}
	doc.WriteString(tally(slices.Concat(upstreamRows(), hazardRows(), dutyRows())))
	docpage.Compare(t, conformanceDoc, doc.String(), *rewrite)
}

func tally(rows []conformance) string {
	counts := map[likeness]int{}
	for _, c := range rows {
		counts[c.likeness]++
	}
	return fmt.Sprintf("\nIn all %d rows: %d as upstream, %d stricter, %d better, %d different, %d not ours.\n",
		len(rows), counts[same], counts[stricter], counts[better], counts[differs], counts[others])
}

func shown(t *testing.T, scenario string) error {
	words := strings.Fields(scenario)
	switch {
	case len(words) == 2 && words[0] == "script":
		text, err := os.ReadFile(filepath.Join("testdata", words[1]+".txt"))
		if err == nil && play(t, string(text)) != string(text) {
			err = fmt.Errorf("the script prints otherwise")
		}
		return err
	case len(words) == 3 && words[0] == "test":
		return docpage.Within(filepath.Join("../..", words[1], "*_test.go"), `(?m)^func `+words[2]+`\(t \*testing\.T\)`)
	case len(words) == 2 && words[0] == "sandbox":
		return docpage.Within("../../test/e2e/*.go", `Name:\s+"`+words[1]+`"`)
	}
	return fmt.Errorf("neither script, test nor sandbox")
}

func TestRowsAreComplete(t *testing.T) {
	want := func(numbers ...[2]int) []string {
		var list []string
		for _, n := range numbers {
			for i := n[0]; i <= n[1]; i++ {
				list = append(list, fmt.Sprint(i))
			}
		}
		return list
	}
	numbers := func(rows []conformance) []string {
		var list []string
		for _, c := range rows {
			list = append(list, c.row)
		}
		return list
	}
	if got := numbers(upstreamRows()); !slices.Equal(got, want([2]int{1, 33}, [2]int{39, 43})) {
		t.Errorf("rows %v", got)
	}
	if got := numbers(hazardRows()); !slices.Equal(got, want([2]int{1, 39})) {
		t.Errorf("hazards %v", got)
	}
}
