// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// The tests, exported names and scripts in docs/internals/invariants.md exist. It names nothing private to
// a package.
func TestInvariantsNameWhatIsThere(t *testing.T) {
	root := moduleRoot(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "internals", "invariants.md"))
	if err != nil {
		t.Fatal(err)
	}
	functions := declared(t, root, "internal/ledger", "internal/rules", "internal/protocol", "internal/convert", "internal/watch", "internal/write",
		"internal/lead", "controller", "controller/ticket", "plugins/internal/binding", "test/world", "api/v1alpha1")
	sections := strings.Split(string(text), "\n## ")
	for _, i := range []string{"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9"} {
		found := false
		for _, s := range sections {
			found = found || strings.HasPrefix(s, i+":") && strings.Contains(s, "Can fail:")
		}
		if !found {
			t.Errorf("no section says where %s is kept and what can fail", i)
		}
	}
	for _, match := range quoted.FindAllStringSubmatch(string(text), -1) {
		name := match[1]
		last := name[strings.LastIndex(name, ".")+1:]
		script, _ := filepath.Glob(filepath.Join(root, "internal/rules/testdata", name+".txt"))
		_, err := os.Stat(filepath.Join(root, name))
		switch {
		case functions[last], len(script) > 0, err == nil, strings.ContainsAny(name, " …*") || strings.HasPrefix(name, "-"):
		default:
			t.Errorf("docs/internals/invariants.md names %s, which is neither exported nor a test, a file or a script", name)
		}
	}
}

// Each risk without a fact in the API names a world or test.
func TestRisksNameTheirWorlds(t *testing.T) {
	root := moduleRoot(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "internals", "invariants.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n### What no fact in the API shows\n")
	section, _, _ = strings.Cut(section, "\n## ")
	risks := strings.Split(section, "\n- ")[1:]
	for _, risk := range risks {
		if !strings.Contains(risk, "(`residual/") && !strings.Contains(risk, "(`TestResidualRisk") && !strings.Contains(risk, "(explorer: ") {
			t.Errorf("this risk names no world in which it must be found:\n%s", risk)
		}
	}
	scripts, err := filepath.Glob(filepath.Join(root, "internal/rules/testdata/residual/*.txt"))
	if err != nil || len(scripts) == 0 || len(risks) == 0 {
		t.Fatalf("%d risks, %d scripts: %v", len(risks), len(scripts), err)
	}
	for _, script := range scripts {
		if name := "`residual/" + strings.TrimSuffix(filepath.Base(script), ".txt") + "`"; !strings.Contains(section, name) {
			t.Errorf("no risk names %s", name)
		}
	}
}

func declared(t *testing.T, root string, folders ...string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", folder, err)
		}
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					names[n.Name.Name] = true
				case *ast.TypeSpec:
					names[n.Name.Name] = true
				case *ast.Field:
					for _, name := range n.Names {
						names[name.Name] = true
					}
				case *ast.ValueSpec:
					for _, name := range n.Names {
						names[name.Name] = true
					}
				}
				return true
			})
		}
	}
	maps.DeleteFunc(names, func(name string, _ bool) bool { return !ast.IsExported(name) })
	return names
}
