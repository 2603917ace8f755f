// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"go/ast"
	"go/token"
	"testing"
)

// A log's field "reason" is a code, as in events, conditions and metrics.
func TestLogsHaveCodesForReasons(t *testing.T) {
	fields := 0
	for _, folder := range []string{"internal", "controller", "plugins", "webhook"} {
		for _, s := range sources(t, folder) {
			ast.Inspect(s.file, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				for i, arg := range call.Args[:max(0, len(call.Args)-1)] {
					if key, ok := arg.(*ast.BasicLit); ok && key.Kind == token.STRING && key.Value == `"reason"` {
						fields++
						if worded(call.Args[i+1]) {
							t.Errorf("%s: a log's reason is an error or a message: reasons are codes, call it err", s.path)
						}
					}
				}
				return true
			})
		}
	}
	if fields < 4 {
		t.Errorf("only %d log fields of that name are found", fields)
	}
}

func worded(value ast.Expr) bool {
	if call, ok := value.(*ast.CallExpr); ok {
		value = call.Fun
	}
	selector, ok := value.(*ast.SelectorExpr)
	return ok && (selector.Sel.Name == "Error" || selector.Sel.Name == "Message")
}
