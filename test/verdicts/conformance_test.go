// SPDX-License-Identifier: Apache-2.0

package verdicts_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/test/docpage"
	"github.com/moorage-dev/moorage/test/verdicts"
)

const (
	root = "../.."
	page = root + "/docs/internals/conformance-scheduler.md"
)

var rewrite = flag.Bool("rewrite", false, "write docs/internals/conformance-scheduler.md")

// The proof is "verdict NAME" (a row of Table), "script NAME" (of internal/rules/testdata), "test FOLDER
// NAME" (a Go test) or "sandbox NAME" (a scenario of test/e2e).
type clause struct {
	asked  string
	answer string
	shown  []string
}

const intro = `# What scheduler and extender answer

The first tables have a row for each case of plugin and extender, and its tests. Each case of the first six tables
(access modes, SELinux labels, limits, claims) is shown twice: by the core, and in
kube-scheduler's framework or over the extender's HTTP. The last table has every verdict, with the message
that the pod gets; each of its rows runs through the plugin in kube-scheduler's
own framework and through the extender's HTTP handler.

| shown by | command |
|---|---|
| verdict NAME | ` + "`go test ./plugins/volumehold ./plugins/extender -run 'TestVerdict'`" + ` |
| script NAME | ` + "`go test ./internal/rules -run 'TestScripts/NAME$'`" + ` |
| test FOLDER NAME | ` + "`go test ./FOLDER -run 'NAME$'`" + ` |
| sandbox NAME | ` + "`bin/moorage-sandbox run NAME`" + ` |

Tests of plugins/scheduler run a whole kube-scheduler over an API in memory; the
controller there is played by the test. A sandbox scenario has real processes.

This file is written by ` + "`go test ./test/verdicts -rewrite`" + `. That test
fails when something named here does not exist, when a case of the first six
tables is not shown twice, when a verdict is named by no row, or when this file says otherwise.
`

func TestConformance(t *testing.T) {
	var doc strings.Builder
	doc.WriteString(intro)
	named := map[string]bool{}
	for _, section := range sections() {
		fmt.Fprintf(&doc, "\n## %s\n\n| case | answer | shown by |\n|---|---|---|\n", section.title)
		for _, c := range section.clauses {
			if len(c.shown) == 0 || c.answer == "" {
				t.Errorf("%s: %s: nothing shows it, or there is no answer", section.title, c.asked)
			}
			if section.both && !(slices.ContainsFunc(c.shown, byCore) && slices.ContainsFunc(c.shown, byFramework)) {
				t.Errorf("%s: %s: not shown by the core and in the framework both: %q", section.title, c.asked, c.shown)
			}
			for _, by := range c.shown {
				named[by] = true
				if err := exists(by); err != nil {
					t.Errorf("%s: %s: %q: %v", section.title, c.asked, by, err)
				}
			}
			fmt.Fprintf(&doc, "| %s | %s | %s |\n", c.asked, c.answer, strings.Join(c.shown, "; "))
		}
	}
	doc.WriteString("\n## Every verdict\n\n| verdict | outcome | what the pod is told |\n|---|---|---|\n")
	for _, row := range verdicts.Table() {
		if !named["verdict "+row.Name] {
			t.Errorf("verdict %q is named by no row", row.Name)
		}
		fmt.Fprintf(&doc, "| %s | %s | %s |\n", row.Name, row.Outcome, row.Message)
	}
	docpage.Compare(t, page, doc.String(), *rewrite)
}

func byCore(name string) bool {
	return strings.HasPrefix(name, "script ") || strings.HasPrefix(name, "test internal/")
}

func byFramework(name string) bool {
	return strings.HasPrefix(name, "verdict ") || strings.HasPrefix(name, "test plugins/") || strings.HasPrefix(name, "sandbox ")
}

func exists(name string) error {
	kind, rest, _ := strings.Cut(name, " ")
	words := strings.Fields(rest)
	switch {
	case kind == "verdict":
		if slices.ContainsFunc(verdicts.Table(), func(r verdicts.Row) bool { return r.Name == rest }) {
			return nil
		}
		return fmt.Errorf("there is no such row")
	case kind == "script" && len(words) == 1:
		_, err := os.Stat(filepath.Join(root, "internal/rules/testdata", rest+".txt"))
		return err
	case kind == "test" && len(words) == 2:
		return docpage.Within(filepath.Join(root, words[0], "*_test.go"), `(?m)^func `+words[1]+`\([a-z] \*testing\.[TF]\)`)
	case kind == "sandbox" && len(words) == 1:
		return docpage.Within(root+"/test/e2e/*.go", `Name:\s+"`+strings.TrimPrefix(rest, "extender-")+`"`)
	}
	return fmt.Errorf("neither verdict, script, test nor sandbox")
}
