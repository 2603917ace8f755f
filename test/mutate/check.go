// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
)

// checker checks the types of packages, with imports from compiled ones.
type checker struct{ compiled map[string]string }

func newChecker(root string) (*checker, error) {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, t := range targets {
		args = append(args, "./"+t.folder)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	c := &checker{compiled: map[string]string{}}
	for line := range strings.Lines(string(out)) {
		if path, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			c.compiled[path] = file
		}
	}
	return c, nil
}

// check returns a package and all that is wrong with it.
func (c *checker) check(set *token.FileSet, files []*ast.File, info *types.Info) (*types.Package, []types.Error) {
	var faults []types.Error
	config := types.Config{
		Importer: importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(c.compiled[path]) }),
		Error: func(err error) {
			if fault, ok := errors.AsType[types.Error](err); ok {
				faults = append(faults, fault)
			}
		},
	}
	p, _ := config.Check(files[0].Name.Name, set, files, info) // the error is the first of the faults
	return p, faults
}

// settle removes the switched mutants that do not compile, and returns the text of the code's files
// with the others in it.
func (c *checker) settle(of *code) ([][]byte, error) {
	for {
		var texts [][]byte
		for i, path := range of.paths {
			texts = append(texts, switched(of.sources[i], of.mutants, path))
		}
		texts = append(texts, switches(of.name, len(of.mutants)))
		set := token.NewFileSet()
		files, err := parse(set, append(append([]string{}, of.paths...), of.folder+"/"+switchFile), texts)
		if err != nil {
			return nil, err
		}
		_, faults := c.check(set, files, nil)
		if len(faults) == 0 {
			return texts, nil
		}
		settled := false
		for _, fault := range faults {
			for i, file := range files {
				if file.FileStart <= fault.Pos && fault.Pos < file.FileEnd {
					if id := around(texts[i], set.Position(fault.Pos).Offset); id > 0 && of.mutant(id).form != fixed {
						of.mutant(id).form, settled = fixed, true
					}
				}
			}
		}
		if !settled {
			return nil, fmt.Errorf("%s: %w", set.Position(faults[0].Pos), faults[0])
		}
	}
}

func (of *code) mutant(id int) *mutant { return &of.mutants[id-of.mutants[0].id] }

// around is the switch that stands innermost around a place, or next before it.
func around(text []byte, at int) int {
	open := bytes.LastIndex(text[:min(at+1, len(text))], []byte(beginMark))
	if open < 0 {
		return 0
	}
	depth := 0
	for i := at; i >= 0; i-- {
		switch rest := text[i:]; {
		case bytes.HasPrefix(rest, []byte(endMark)) && i+len(endMark) <= at:
			depth++
		case bytes.HasPrefix(rest, []byte(beginMark)) && depth > 0:
			depth--
		case bytes.HasPrefix(rest, []byte(beginMark)):
			var id int
			_, _ = fmt.Sscanf(string(rest[len(beginMark):]), "%d", &id)
			return id
		}
	}
	return 0
}
