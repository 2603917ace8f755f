// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// The core may import these packages: no I/O, clock or randomness.
var pure = []string{
	"cmp", "container/list", "crypto/sha256", "encoding/binary", "encoding/hex", "errors", "fmt", "iter", "maps", "math", "math/bits", "slices",
	"strconv", "strings", "sync", "time", "unique",
}

var pureFolders = []string{"internal/ledger", "internal/rules", "internal/protocol", "controller/attacher/decide"}

var clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}

func impurities(set *token.FileSet, f *ast.File) []string {
	var found []string
	add := func(n ast.Node, what string) {
		found = append(found, set.Position(n.Pos()).String()+": "+what)
	}
	for _, i := range f.Imports {
		if path := i.Path.Value[1 : len(i.Path.Value)-1]; standard(path) && !slices.Contains(pure, path) {
			add(i, "imports "+path)
		}
	}
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
			for _, spec := range g.Specs {
				if !constant(spec.(*ast.ValueSpec)) {
					add(spec, "is a package variable")
				}
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			add(n, "starts a goroutine")
		case *ast.SendStmt, *ast.SelectStmt, *ast.ChanType:
			add(n, "uses a channel")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clocks, n.Sel.Name) {
				add(n, "reads a clock: time."+n.Sel.Name)
			}
		}
		return true
	})
	return found
}

// constant: an error, a literal, or a table (an array). TestTablesAreNotWritten guards the tables.
func constant(spec *ast.ValueSpec) bool {
	return !slices.ContainsFunc(spec.Values, func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.CompositeLit:
			array, ok := e.Type.(*ast.ArrayType)
			return !ok || array.Len == nil
		case *ast.CallExpr:
			s, ok := e.Fun.(*ast.SelectorExpr)
			return !ok || s.Sel.Name != "New"
		}
		return true
	}) && len(spec.Values) > 0
}

// The core has no clock, I/O, randomness, goroutines or state.
func TestCoreIsPure(t *testing.T) {
	for _, folder := range pureFolders {
		files := sources(t, folder)
		if len(files) == 0 {
			t.Fatalf("no files in %s", folder)
		}
		for _, f := range files {
			for _, what := range impurities(f.set, f.file) {
				t.Errorf("%s", what)
			}
		}
	}
}

func TestPurityCatches(t *testing.T) {
	for name, text := range map[string]string{
		"clock":     "package p\nimport \"time\"\nfunc f() time.Time { return time.Now() }",
		"goroutine": "package p\nfunc f() { go f() }",
		"channel":   "package p\nfunc f(c chan int) {}",
		"random":    "package p\nimport \"math/rand\"\nfunc f() int { return rand.Int() }",
		"io":        "package p\nimport \"os\"\nfunc f() { os.Exit(1) }",
		"state":     "package p\nvar count int",
		"made":      "package p\nvar m = make(map[int]int)",
		"map":       "package p\nvar m = map[int]int{}",
		"slice":     "package p\nvar s = []int{1}",
	} {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(impurities(set, f)) == 0 {
			t.Errorf("%s goes unnoticed", name)
		}
	}
}

// No function assigns to the core's package variables, or takes their address or a slice.
func TestTablesAreNotWritten(t *testing.T) {
	tables := 0
	for _, folder := range pureFolders {
		files := sources(t, folder)
		names := map[string]bool{}
		for _, f := range files {
			for _, d := range f.file.Decls {
				if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
					for _, name := range g.Specs[0].(*ast.ValueSpec).Names {
						names[name.Name] = true
					}
				}
			}
		}
		tables += len(names)
		for _, f := range files {
			for _, n := range written(f.file) {
				if names[root(n)] {
					t.Errorf("%s: writes to a package variable, or lends it out", f.set.Position(n.Pos()))
				}
			}
		}
	}
	if tables == 0 {
		t.Error("no package variables are found")
	}
}

func written(f *ast.File) []ast.Expr {
	var list []ast.Expr
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			list = append(list, n.Lhs...)
		case *ast.IncDecStmt:
			list = append(list, n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				list = append(list, n.X)
			}
		case *ast.SliceExpr:
			list = append(list, n.X)
		}
		return true
	})
	return list
}

func root(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x.Name
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		default:
			return ""
		}
	}
}
