// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// prefixes of the constants of reasons
var reasonNames = []string{"Reason", "reason", "event"}

// docs/reasons.md explains every reason outside the arbiter's codes, and no other.
func TestReasonsOfOthersAreDocumented(t *testing.T) {
	inCode := map[string]string{v1alpha1.VolumeReserved: "api/v1alpha1"} // its constant has another prefix
	for _, folder := range []string{"api", "internal", "controller", "plugins", "webhook"} {
		for _, s := range sources(t, folder) {
			if within(s.folder, "internal/kubectl") || within(s.folder, "internal/serving") {
				continue
			}
			for _, reason := range reasonsIn(s.file) {
				inCode[reason] = s.path
			}
		}
	}
	page, err := os.ReadFile(filepath.Join(moduleRoot(t), "docs/reasons.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## Conditions, events and labels\n")
	if !ok {
		t.Fatal("docs/reasons.md has no section on the reasons of conditions, events and labels")
	}
	documented := map[string]bool{}
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		reason := strings.Trim(strings.TrimSpace(cells[0]), "`")
		documented[reason] = true
		if inCode[reason] == "" {
			t.Errorf("docs/reasons.md explains %s, which no constant names", reason)
		}
		if len(cells) != 4 || slices.ContainsFunc(cells, func(c string) bool { return strings.TrimSpace(c) == "" }) {
			t.Errorf("%s: the row has %d cells, want reason, meaning, what changes it, what to do", reason, len(cells))
		}
	}
	for reason, path := range inCode {
		if !documented[reason] {
			t.Errorf("%s names the reason %s, which docs/reasons.md does not explain", path, reason)
		}
	}
}

func reasonsIn(file *ast.File) []string {
	var found []string
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			for i, name := range v.Names {
				if i < len(v.Values) && namesReason(name.Name) {
					if text, ok := v.Values[i].(*ast.BasicLit); ok && text.Kind == token.STRING {
						if value, err := strconv.Unquote(text.Value); err == nil {
							found = append(found, value)
						}
					}
				}
			}
		}
	}
	return found
}

func namesReason(name string) bool {
	return slices.ContainsFunc(reasonNames, func(prefix string) bool {
		rest, ok := strings.CutPrefix(name, prefix)
		return ok && rest != "" && rest[0] >= 'A' && rest[0] <= 'Z'
	})
}
