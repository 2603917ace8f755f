// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// pure are the packages of the standard library that the core may import:
// none of them does I/O, has a clock that the core calls, or randomness.
var pure = []string{
	"cmp", "container/list", "crypto/sha256", "encoding/binary", "encoding/hex", "errors", "fmt", "iter", "maps", "math", "math/bits", "slices",
	"strconv", "strings", "sync", "time", "unique",
}

// clocks are the functions of time that read a clock or wait for one.
var clocks = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}

// impurities lists what makes a file impure, as "line: what".
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

// constant says whether a package variable is one for want of constants of its
// type: an error, or a literal.
func constant(spec *ast.ValueSpec) bool {
	return !slices.ContainsFunc(spec.Values, func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.CompositeLit:
			return false
		case *ast.CallExpr:
			s, ok := e.Fun.(*ast.SelectorExpr)
			return !ok || s.Sel.Name != "New"
		}
		return true
	}) && len(spec.Values) > 0
}

// TestCoreIsPure: ledger, arbiter and the attacher's rules have no clock, no I/O, no randomness, no
// goroutines and no state of their own.
func TestCoreIsPure(t *testing.T) {
	for _, folder := range []string{"internal/ledger", "internal/arbiter", "controller/attacher/decide"} {
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

// TestPurityCatches plants what the core must not do.
func TestPurityCatches(t *testing.T) {
	for name, text := range map[string]string{
		"clock":     "package p\nimport \"time\"\nfunc f() time.Time { return time.Now() }",
		"goroutine": "package p\nfunc f() { go f() }",
		"channel":   "package p\nfunc f(c chan int) {}",
		"random":    "package p\nimport \"math/rand\"\nfunc f() int { return rand.Int() }",
		"io":        "package p\nimport \"os\"\nfunc f() { os.Exit(1) }",
		"state":     "package p\nvar count int",
		"made":      "package p\nvar m = make(map[int]int)",
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
