// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// target is a package that is changed, and the packages whose tests are to notice,
// the quickest first.
type target struct {
	folder string
	uses   []string // folders whose constants it uses, by their package's name
	tests  []string
}

// targets are what is pure: quick to build, quick to test.
var targets = []target{
	{"internal/ledger", nil, []string{"internal/ledger", "internal/arbiter"}},
	{"internal/arbiter", []string{"internal/ledger"}, []string{"internal/arbiter"}},
	{"internal/flow", []string{"internal/ledger", "internal/arbiter"}, []string{"internal/flow", "test/sim"}},
	{"controller/attacher/decide", []string{"internal/ledger"}, []string{"controller/attacher/decide"}},
}

// mutants lists the mutants of a target.
func (t target) mutants(root string) ([]mutant, error) {
	constants := map[string]string{}
	for _, folder := range append([]string{t.folder}, t.uses...) {
		prefix := ""
		if folder != t.folder {
			prefix = filepath.Base(folder) + "."
		}
		if err := constantsOf(filepath.Join(root, folder), prefix, constants); err != nil {
			return nil, err
		}
	}
	paths, err := sources(filepath.Join(root, t.folder))
	if err != nil {
		return nil, err
	}
	var list []mutant
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		f := &finder{set: set, source: source, path: filepath.ToSlash(filepath.Join(t.folder, filepath.Base(path))), next: constants}
		list = append(list, f.find(file)...)
	}
	return numbered(list), nil
}

// numbered tells apart what is changed alike in several places of a function.
func numbered(list []mutant) []mutant {
	count := map[string]int{}
	for i := range list {
		key := list[i].key()
		if count[key]++; count[key] > 1 {
			list[i].what += fmt.Sprintf(" (%d)", count[key])
		}
	}
	return list
}

// sources lists a folder's files that are not tests.
func sources(folder string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	return slices.DeleteFunc(paths, func(p string) bool { return strings.HasSuffix(p, "_test.go") }), err
}

// constantsOf adds, for each constant of a folder, the next one of its block, as a
// file names it that imports the folder under the prefix. Blocks of one constant, and
// of numbers without a type, have none.
func constantsOf(folder, prefix string, next map[string]string) error {
	paths, err := sources(folder)
	if err != nil {
		return err
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
				for kind, names := range kinds(g) {
					for i, name := range names {
						if other := names[(i+1)%len(names)]; kind != "" && other != name && (prefix == "" || ast.IsExported(name)) {
							next[prefix+name] = prefix + other
						}
					}
				}
			}
		}
	}
	return nil
}

// kinds groups the names of a block of constants by their type.
func kinds(g *ast.GenDecl) map[string][]string {
	groups, kind := map[string][]string{}, ""
	for _, spec := range g.Specs {
		v := spec.(*ast.ValueSpec)
		if name, ok := v.Type.(*ast.Ident); ok {
			kind = name.Name
		} else if of, ok := v.Type.(*ast.SelectorExpr); ok {
			kind = of.Sel.Name
		} else if len(v.Values) > 0 {
			kind = ""
		}
		for _, name := range v.Names {
			if name.Name != "_" {
				groups[kind] = append(groups[kind], name.Name)
			}
		}
	}
	return groups
}
