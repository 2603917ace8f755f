// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/test/docpage"
)

const conformanceDoc = "../../docs/internals/conformance-attacher.md"

// upstreamTests are the lines of external-attacher 4.12.0 at which its handler tests begin
// (pkg/controller).
var upstreamTests = map[string][]int{
	"csi_handler_test.go": {
		329, 346, 362, 379, 395, 412, 429, 446, 463, 481, 499, 517, 535, 550, 571, 624, 631, 643, 659, 665, 676, 710, 721,
		732, 742, 789, 833, 863, 891, 901, 912, 929, 950, 966, 982, 999, 1018, 1035, 1056, 1071, 1092, 1113, 1120, 1137,
		1182, 1194, 1206, 1218, 1238, 1289, 1311, 1320, 1329, 1334, 1339, 1348, 1357, 1389, 1395, 1401, 1407, 1434, 1485,
		1504, 1517, 1531, 1560, 1578,
	},
	"trivial_handler_test.go": {49, 59, 69, 74},
}

var (
	stockSections = []string{"attach", "detach", "volumes", "reconcile", "trivial"}
	ownSections   = []string{"exclusive", "unknown", "stays", "fencing", "writes", "retry", "codes", "lies"}
)

const docIntro = `# What moorage-attacher does where external-attacher does it

Each row is one test of external-attacher 4.12.0 (pkg/controller), at its line.
The scenario of that name in controller/attacher/testdata has the objects, the
event, and the API writes and CSI calls of external-attacher and of
moorage-attacher, in their order, as its test records them. The result compares
the two:

- **same**: the same writes and calls in the same order.
- **fewer writes**, **fewer calls**: the same order, with some of them left out.
- **differs**: something else; the last column says why.

External-attacher's own tests run on a fake client that keeps neither patches nor
finalizers. Its transcripts here are of a real API server. Messages are
not compared.

This file is written by ` + "`go test ./controller/attacher -run 'Scenarios|Conformance' -rewrite`" + `,
and a test compares it with the run.
`

// Every upstream test has its scenario, every difference its reason, and the document equals the run.
func TestConformance(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(docIntro)
	counts, covered := map[string]int{}, map[string]bool{}
	for _, section := range stockSections {
		file := filepath.Join("testdata", section+".txt")
		fmt.Fprintf(&doc, "\n## %s\n\n| test | scenario | result | why |\n|---|---|---|---|\n", subject(t, file))
		for _, s := range readScenarios(t, file) {
			at, title := s.source()
			if at == "" || !s.hasStock {
				t.Errorf("%s: %q names no upstream test, or not what it expects", file, s.name)
			}
			verdict := s.verdict()
			if (verdict == "same") != (s.why == "") {
				t.Errorf("%s: %q is %s, and the reason is %q", file, s.name, verdict, s.why)
			}
			counts[verdict]++
			covered[at] = true
			fmt.Fprintf(&doc, "| %s | %s | %s | %s |\n", at, title, verdict, s.why)
		}
	}
	for name, lines := range upstreamTests {
		for _, line := range lines {
			if at := name + ":" + strconv.Itoa(line); !covered[at] {
				t.Errorf("%s has no scenario", at)
			}
		}
	}
	fmt.Fprintf(&doc, "\nIn all: %d same, %d fewer writes, %d fewer calls, %d different.\n",
		counts["same"], counts["fewer writes"], counts["fewer calls"], counts["differs"])
	doc.WriteString("\n# What it does beyond that\n\nEach line is a scenario with its transcript, in the same place.\n")
	for _, section := range ownSections {
		file := filepath.Join("testdata", section+".txt")
		fmt.Fprintf(&doc, "\n## %s\n\n", subject(t, file))
		for _, s := range readScenarios(t, file) {
			fmt.Fprintf(&doc, "- %s\n", s.name)
			if s.why != "" {
				fmt.Fprintf(&doc, "  (%s)\n", s.why)
			}
		}
	}
	docpage.Compare(t, conformanceDoc, doc.String(), *rewrite)
}

func subject(t *testing.T, file string) string {
	t.Helper()
	line, _, _ := strings.Cut(strings.TrimSpace(head(t, file)), "\n")
	return strings.TrimSuffix(strings.TrimPrefix(line, "# "), ".")
}

func TestEveryFileOfScenariosIsInTheDocument(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		section := strings.TrimSuffix(filepath.Base(file), ".txt")
		if !slices.Contains(stockSections, section) && !slices.Contains(ownSections, section) {
			t.Errorf("%s is in no section of %s", file, conformanceDoc)
		}
	}
}
