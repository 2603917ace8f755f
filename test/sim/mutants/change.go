// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"strings"
)

// change is what is done to the statement, case, function or field that begins on the
// line of a marker. text is Go, or empty.
type change struct{ marker, how, text string }

// apply changes a file's text. The ways are
//
//	drop           the statement
//	condition TEXT the condition of the if or case
//	and TEXT       the condition, and TEXT beside it
//	or TEXT        the condition, or TEXT
//	value TEXT     what is returned, assigned or given to a field
func (c change) apply(text string) (string, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", err
	}
	marker := strings.Index(text, c.comment())
	if marker < 0 {
		return "", errMarker
	}
	n := beginsOn(set, file, 1+strings.Count(text[:marker], "\n"))
	if n == nil {
		return "", errMarker
	}
	var from, to token.Pos
	switch c.how {
	case "drop":
		from, to = n.Pos(), n.End()
	case "condition", "and", "or":
		from, to = condition(n)
	case "value":
		from, to = value(n)
	}
	if !from.IsValid() {
		return "", fmt.Errorf("there is nothing to %s", c.how)
	}
	begin, end := set.Position(from).Offset, set.Position(to).Offset
	changed := text[:begin] + c.with(text[begin:end]) + text[end:]
	if _, err := format.Source([]byte(changed)); err != nil {
		return "", err
	}
	return changed, nil
}

// with is what replaces a piece of code.
func (c change) with(old string) string {
	switch c.how {
	case "and":
		return "(" + old + ") && (" + c.text + ")"
	case "or":
		return "(" + old + ") || (" + c.text + ")"
	}
	return c.text
}

// beginsOn is the outermost node that can be changed and begins on a line.
func beginsOn(set *token.FileSet, file *ast.File, line int) ast.Node {
	var found ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil || found != nil {
			return false
		}
		if set.Position(n.Pos()).Line != line {
			return true
		}
		switch n := n.(type) {
		case *ast.FuncDecl:
			found = n.Body.List[0]
		case *ast.IfStmt, *ast.CaseClause, *ast.ReturnStmt, *ast.AssignStmt, *ast.ExprStmt, *ast.KeyValueExpr:
			found = n
		}
		return found == nil
	})
	return found
}

// condition is where the condition of an if or a case is.
func condition(n ast.Node) (from, to token.Pos) {
	switch n := n.(type) {
	case *ast.IfStmt:
		return n.Cond.Pos(), n.Cond.End()
	case *ast.CaseClause:
		if len(n.List) > 0 {
			return n.List[0].Pos(), n.List[len(n.List)-1].End()
		}
	}
	return token.NoPos, token.NoPos
}

// value is where the value is that is returned, assigned or given to a field.
func value(n ast.Node) (from, to token.Pos) {
	switch n := n.(type) {
	case *ast.ReturnStmt:
		if len(n.Results) > 0 {
			return n.Results[0].Pos(), n.Results[len(n.Results)-1].End()
		}
	case *ast.AssignStmt:
		return n.Rhs[0].Pos(), n.Rhs[len(n.Rhs)-1].End()
	case *ast.KeyValueExpr:
		return n.Value.Pos(), n.Value.End()
	}
	return token.NoPos, token.NoPos
}
