// SPDX-License-Identifier: Apache-2.0

// Package breaks takes rules out of code when it is compiled (go build -overlay); the code has no trace of
// it. All rules are compiled in, and a variable of the environment selects the broken rule.
package breaks

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Break is the folder of a package, a function of it, and Go statements that run first in the function. Most
// return another result than the function would:
//
//	internal/rules detachPlan.mayReport: return managed(n)
//
// They may use the receiver, the parameters and the named results.
type Break string

func (b Break) Function() string {
	function, _, _ := strings.Cut(string(b), ": ")
	return function
}

// Env is the environment variable with the name of the broken rule.
const Env = "MOORAGE_BREAK"

const switchFile = "broken_rule.go"

// Overlay writes the broken files into a folder, and returns the file for go build -overlay.
func Overlay(root, dir string, rules map[string][]Break) (string, error) {
	texts, err := changed(root, rules)
	if err != nil {
		return "", err
	}
	return Write(root, dir, texts)
}

// Write writes files by their paths from the module's root, and returns the file for go build -overlay.
func Write(root, dir string, texts map[string]string) (string, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for path, text := range texts {
		at := filepath.Join(dir, strings.ReplaceAll(path, "/", "-"))
		replace[filepath.Join(root, path)] = at
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o600)
}

func changed(root string, rules map[string][]Break) (map[string]string, error) {
	inserts := map[string]map[string]string{} // by folder and function
	for _, rule := range slices.Sorted(maps.Keys(rules)) {
		for _, b := range rules[rule] {
			function, statements, _ := strings.Cut(string(b), ": ")
			folder, function, ok := strings.Cut(function, " ")
			if !ok || statements == "" {
				return nil, fmt.Errorf("%q is no break: FOLDER FUNCTION: STATEMENTS", b)
			}
			if inserts[folder] == nil {
				inserts[folder] = map[string]string{}
			}
			inserts[folder][function] += fmt.Sprintf(" if brokenRule == %q { %s };", rule, statements)
		}
	}
	texts := map[string]string{}
	for folder, functions := range inserts {
		if err := insert(root, folder, functions, texts); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

func insert(root, folder string, functions, texts map[string]string) error {
	paths, err := Sources(filepath.Join(root, folder))
	if err != nil {
		return err
	}
	left := maps.Clone(functions)
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		var text strings.Builder
		at := 0
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil || left[NameOf(f)] == "" {
				continue
			}
			begin := set.Position(f.Body.Lbrace).Offset + 1
			text.Write(source[at:begin])
			text.WriteString(left[NameOf(f)])
			at = begin
			delete(left, NameOf(f))
		}
		if at > 0 {
			text.Write(source[at:])
			texts[folder+"/"+filepath.Base(path)] = text.String()
			texts[folder+"/"+switchFile] = fmt.Sprintf("package %s\n\nimport \"os\"\n\nvar brokenRule = os.Getenv(%q)\n", file.Name.Name, Env)
		}
	}
	for function := range left {
		return fmt.Errorf("%s has no function %s: change the break as the rule has changed", folder, function)
	}
	return nil
}

func Sources(folder string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	return slices.DeleteFunc(paths, func(p string) bool { return strings.HasSuffix(p, "_test.go") }), err
}

func NameOf(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	kind := d.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	if index, ok := kind.(*ast.IndexExpr); ok {
		kind = index.X
	}
	if name, ok := kind.(*ast.Ident); ok {
		return name.Name + "." + d.Name.Name
	}
	return d.Name.Name
}
