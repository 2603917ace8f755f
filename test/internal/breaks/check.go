// SPDX-License-Identifier: Apache-2.0

package breaks

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

func Check(root string, rules map[string][]Break) error {
	texts, err := changed(root, rules)
	if err != nil {
		return err
	}
	folders := map[string]bool{}
	for file := range texts {
		folders[path.Dir(file)] = true
	}
	c, err := NewChecker(root, folders)
	if err != nil {
		return err
	}
	for folder := range folders {
		sources, err := Sources(filepath.Join(root, folder))
		if err != nil {
			return err
		}
		var paths []string
		for _, source := range append(sources, switchFile) {
			paths = append(paths, folder+"/"+filepath.Base(source))
		}
		set := token.NewFileSet()
		files, err := Parse(set, paths, func(i int) ([]byte, error) {
			if text, ok := texts[paths[i]]; ok {
				return []byte(text), nil
			}
			return os.ReadFile(sources[i])
		})
		if err != nil {
			return err
		}
		if _, faults := c.Check(set, files, nil); len(faults) > 0 {
			return fmt.Errorf("a break does not compile: %w", faults[0])
		}
	}
	return nil
}

func Parse(set *token.FileSet, paths []string, text func(int) ([]byte, error)) ([]*ast.File, error) {
	var files []*ast.File
	for i, path := range paths {
		source, err := text(i)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	return files, nil
}

type Checker struct{ compiled map[string]string }

func NewChecker(root string, folders map[string]bool) (*Checker, error) {
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for folder := range folders {
		args = append(args, "./"+folder)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	c := &Checker{compiled: map[string]string{}}
	for line := range strings.Lines(string(out)) {
		if path, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			c.compiled[path] = file
		}
	}
	return c, nil
}

func (c *Checker) Check(set *token.FileSet, files []*ast.File, info *types.Info) (*types.Package, []types.Error) {
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
