// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"go/ast"
	"testing"
)

// tasks are the exported functions of internal/protocol that make tasks; true: a method of Memory.
func tasks(files []source) map[string]bool {
	made := map[string]bool{}
	for _, f := range files {
		for _, d := range f.file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !fn.Name.IsExported() || fn.Type.Results == nil {
				continue
			}
			result := fn.Type.Results.List[0].Type
			if list, ok := result.(*ast.ArrayType); ok {
				result = list.Elt
			}
			if id, ok := result.(*ast.Ident); ok && id.Name == "Task" {
				made[fn.Name.Name] = fn.Recv != nil
			}
		}
	}
	return made
}

// Every driver calls its Memory memory.
func uses(f source) (functions, methods map[string]bool) {
	functions, methods = map[string]bool{}, map[string]bool{}
	ast.Inspect(f.file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch fn := call.Fun.(type) {
		case *ast.Ident:
			functions[fn.Name] = f.folder == "internal/protocol"
		case *ast.SelectorExpr:
			switch of := fn.X.(type) {
			case *ast.Ident:
				functions[fn.Sel.Name] = functions[fn.Sel.Name] || of.Name == "protocol"
			case *ast.SelectorExpr:
				methods[fn.Sel.Name] = methods[fn.Sel.Name] || of.Sel.Name == "memory"
			}
		}
		return true
	})
	return functions, methods
}

func TestProductDrivesFlow(t *testing.T) {
	flow := sources(t, "internal/protocol")
	made := tasks(flow)
	if !made["TakeOver"] || len(made) < 6 {
		t.Fatalf("found only %v", made)
	}
	used := map[string]bool{}
	for _, f := range append(append(flow, sources(t, "internal/write")...), append(sources(t, "controller"), sources(t, "internal/tickets")...)...) {
		functions, methods := uses(f)
		for name, method := range made {
			used[name] = used[name] || method && methods[name] || !method && functions[name]
		}
	}
	for name := range made {
		if !used[name] {
			t.Errorf("none of controller, internal/tickets and internal/write calls %s of internal/protocol", name)
		}
	}
}
