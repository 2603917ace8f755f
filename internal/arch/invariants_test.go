// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var quoted = regexp.MustCompile("`([^`]+)`")

// TestInvariantsNameWhatIsThere: the tests, functions and scripts that
// docs/invariants.md names exist, and each invariant names some.
func TestInvariantsNameWhatIsThere(t *testing.T) {
	root := moduleRoot(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "invariants.md"))
	if err != nil {
		t.Fatal(err)
	}
	functions := declared(t, root, "internal/ledger", "internal/arbiter", "internal/observe", "internal/execute")
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
		script, _ := filepath.Glob(filepath.Join(root, "internal/arbiter/testdata", name+".txt"))
		_, err := os.Stat(filepath.Join(root, name))
		switch {
		case functions[last], len(script) > 0, err == nil, strings.ContainsAny(name, " …*") || strings.HasPrefix(name, "-"):
		case strings.HasSuffix(name, ".go"):
			if files, _ := filepath.Glob(filepath.Join(root, "internal/*", name)); len(files) == 0 {
				t.Errorf("docs/invariants.md names %s, which does not exist", name)
			}
		default:
			t.Errorf("docs/invariants.md names %s, which is neither a function, a type, a field nor a script", name)
		}
	}
}

// declared lists the names of functions, types, fields and constants in
// folders of the module, tests included.
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
	return names
}
