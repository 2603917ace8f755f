// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"

	"github.com/moorage-dev/moorage/test/internal/breaks"
)

type target struct {
	folder string
	uses   []string // folders with constants that it uses, by their package's name
	files  []string // the only changed ones; nil: all
}

var targets = []target{
	{"internal/ledger", nil, nil},
	{"internal/rules", []string{"internal/ledger"}, nil},
	{"internal/protocol", []string{"internal/ledger", "internal/rules"}, nil},
	{"internal/networkfence", []string{"internal/ledger", "internal/rules"}, nil},
	{"controller/attacher/decide", []string{"internal/ledger"}, nil},
	{"internal/fair", nil, nil},
	{"test/sandbox/disk/judge", nil, nil},
	{"test/sandbox/disk/writes", nil, nil},
	{"test/sandbox/disk/csinode", nil, []string{"writer.go"}},
}

func (t target) changes(path string) bool {
	return t.files == nil || slices.Contains(t.files, filepath.Base(path))
}

type code struct {
	target
	name    string
	set     *token.FileSet
	paths   []string // from the module's root
	sources [][]byte
	mutants []mutant
}

func (t target) read(root string, c *breaks.Checker) (*code, error) {
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
	paths, err := breaks.Sources(filepath.Join(root, t.folder))
	if err != nil {
		return nil, err
	}
	of := &code{target: t, set: token.NewFileSet()}
	for _, path := range paths {
		of.paths = append(of.paths, t.folder+"/"+filepath.Base(path))
	}
	files, err := breaks.Parse(of.set, of.paths, func(i int) ([]byte, error) {
		source, err := os.ReadFile(paths[i])
		of.sources = append(of.sources, source)
		return source, err
	})
	if err != nil {
		return nil, err
	}
	of.name = files[0].Name.Name
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	folder, faults := c.Check(of.set, files, info)
	if len(faults) > 0 {
		return nil, faults[0]
	}
	for i, file := range files {
		if !t.changes(of.paths[i]) {
			continue
		}
		f := &finder{set: of.set, source: of.sources[i], path: of.paths[i], next: constants, types: info, folder: folder}
		of.mutants = append(of.mutants, f.find(file)...)
	}
	of.mutants = numbered(of.mutants)
	return of, nil
}

// numbered distinguishes equal changes of a function.
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

// constantsOf adds the next constant of each constant's block, with the importing file's prefix. Blocks
// with one constant, and numbers without a type, have none.
func constantsOf(folder, prefix string, next map[string]string) error {
	paths, err := breaks.Sources(folder)
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

func newChecker(root string) (*breaks.Checker, error) {
	folders := map[string]bool{}
	for _, t := range targets {
		folders[t.folder] = true
	}
	return breaks.NewChecker(root, folders)
}
