// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"strconv"
)

// find lists the mutants of a parsed file.
func (f *finder) find(file *ast.File) []mutant {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f.function = nameOf(d)
			if d.Body != nil {
				ast.Inspect(d.Body, f.visit)
			}
		case *ast.GenDecl:
			if d.Tok == token.VAR || d.Tok == token.CONST {
				f.values(d)
			}
		}
	}
	return f.found
}

// values visits the values of variables and constants. The numbers of constants are
// changed, their texts not.
func (f *finder) values(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		v := spec.(*ast.ValueSpec)
		f.function = v.Names[0].Name
		for _, value := range v.Values {
			ast.Inspect(value, f.visit)
		}
	}
}

// visit adds the mutants of one node.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		f.add(n.Cond, "!("+f.text(n.Cond)+")", "negate "+f.short(n.Cond))
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.add(n, f.text(n.X), "without the not of "+f.short(n))
		}
	case *ast.SwitchStmt:
		f.cases(n)
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.BranchStmt:
		f.add(n, "", "drop "+f.short(n))
	case *ast.AssignStmt:
		f.assignment(n)
	case *ast.BasicLit:
		f.literal(n)
	case *ast.SelectorExpr:
		if name := f.next[f.text(n)]; name != "" {
			f.add(n, name, f.short(n)+" is "+name)
		}
		ast.Inspect(n.X, f.visit)
		return false // the name behind the dot is none of this package
	case *ast.KeyValueExpr:
		ast.Inspect(n.Value, f.visit)
		return false // the key may be a field's name
	case *ast.Ident:
		f.ident(n)
	}
	return true
}

// comparisons are what an operator is replaced by.
var comparisons = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.ADD: token.SUB, token.SUB: token.ADD,
}

// binary changes a comparison, and takes each operand out of a chain of && or ||.
func (f *finder) binary(n *ast.BinaryExpr) {
	if n.Op == token.LAND || n.Op == token.LOR {
		f.add(n, f.text(n.X), "without "+n.Op.String()+" "+f.short(n.Y))
		f.add(n, f.text(n.Y), "without "+f.short(n.X)+" "+n.Op.String())
		return
	}
	if other, ok := comparisons[n.Op]; ok {
		f.add(n, f.text(n.X)+" "+other.String()+" "+f.text(n.Y), f.short(n)+" with "+other.String())
	}
}

// cases switches each case off: a condition is false, and a value is left out.
func (f *finder) cases(s *ast.SwitchStmt) {
	for _, stmt := range s.Body.List {
		clause := stmt.(*ast.CaseClause)
		for i, value := range clause.List {
			switch {
			case s.Tag == nil:
				f.add(value, "false", "never case "+f.short(value))
			case len(clause.List) > 1:
				text := "case "
				for j, other := range clause.List {
					if j != i {
						text += f.text(other) + ", "
					}
				}
				at := f.set.Position(clause.Case)
				f.found = append(f.found, mutant{
					file: f.path, line: at.Line, function: f.function, what: "never case " + f.short(value),
					begin: at.Offset, end: f.set.Position(clause.Colon).Offset, text: text[:len(text)-len(", ")],
				})
			}
		}
	}
}

// assignment drops what is assigned to a variable that exists.
func (f *finder) assignment(n *ast.AssignStmt) {
	if n.Tok == token.DEFINE {
		return
	}
	text := ""
	for i, value := range n.Rhs {
		if i > 0 {
			text += "; "
		}
		left := "_"
		for range len(n.Lhs)/len(n.Rhs) - 1 {
			left += ", _"
		}
		text += left + " = " + f.text(value)
	}
	f.add(n, text, "drop "+f.short(n))
}

// literal replaces a number by another one.
func (f *finder) literal(n *ast.BasicLit) {
	if n.Kind != token.INT {
		return
	}
	if value, err := strconv.ParseInt(n.Value, 0, 32); err == nil {
		other := strconv.FormatInt(2*value+1, 10)
		f.add(n, other, n.Value+" is "+other)
	}
}

// ident replaces a constant by another one of its kind.
func (f *finder) ident(n *ast.Ident) {
	name := f.next[n.Name]
	switch n.Name {
	case "true":
		name = "false"
	case "false":
		name = "true"
	}
	if name != "" {
		f.add(n, name, n.Name+" is "+name)
	}
}
