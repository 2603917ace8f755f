// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/test/internal/breaks"
)

func (f *finder) find(file *ast.File) []mutant {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f.function = breaks.NameOf(d)
			if d.Body != nil {
				ast.Inspect(d.Body, f.visit)
			}
		case *ast.GenDecl:
			if d.Tok == token.VAR || d.Tok == token.CONST {
				f.constant = d.Tok == token.CONST
				f.values(d)
				f.constant = false
			}
		}
	}
	return f.found
}

func (f *finder) values(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		v := spec.(*ast.ValueSpec)
		f.function = v.Names[0].Name
		for _, value := range v.Values {
			ast.Inspect(value, f.visit)
		}
	}
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		f.head(n.Init)
		f.add(n.Cond, condition, "!("+f.text(n.Cond)+")", "negate "+f.short(n.Cond))
	case *ast.ForStmt:
		f.head(n.Init)
		f.head(n.Post)
	case *ast.CommClause:
		f.head(n.Comm)
	case *ast.TypeSwitchStmt:
		f.head(n.Init)
		f.head(n.Assign)
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.add(n, condition, f.text(n.X), "without the not of "+f.short(n))
		}
	case *ast.SwitchStmt:
		f.head(n.Init)
		f.cases(n)
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.BranchStmt:
		f.drop(n.(ast.Stmt))
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			f.drop(n)
		}
	case *ast.BasicLit:
		f.literal(n)
	case *ast.SelectorExpr:
		if name := f.next[f.text(n)]; name != "" {
			f.add(n, value, name, f.short(n)+" is "+name)
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

var comparisons = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL,
	token.ADD: token.SUB, token.SUB: token.ADD,
}

// binary changes a comparison, and takes each operand out of a chain of && or ||.
func (f *finder) binary(n *ast.BinaryExpr) {
	if n.Op == token.LAND || n.Op == token.LOR {
		f.add(n, condition, f.text(n.X), "without "+n.Op.String()+" "+f.short(n.Y))
		f.add(n, condition, f.text(n.Y), "without "+f.short(n.X)+" "+n.Op.String())
		return
	}
	other, ok := comparisons[n.Op]
	if !ok {
		return
	}
	form := condition
	if n.Op == token.ADD || n.Op == token.SUB {
		form = result
		if strings.HasSuffix(f.kind(n), "string") {
			return // has no minus
		}
	}
	f.add(n, form, f.text(n.X)+" "+other.String()+" "+f.text(n.Y), f.short(n)+" with "+other.String())
}

func (f *finder) cases(s *ast.SwitchStmt) {
	for _, stmt := range s.Body.List {
		clause := stmt.(*ast.CaseClause)
		for i, is := range clause.List {
			switch {
			case s.Tag == nil:
				f.add(is, condition, "false", "never case "+f.short(is))
			case len(clause.List) > 1:
				f.add(is, value, f.text(clause.List[(i+1)%len(clause.List)]), "never case "+f.short(is))
			}
		}
	}
}

func (f *finder) head(s ast.Stmt) {
	if s == nil {
		return
	}
	if f.heads == nil {
		f.heads = map[ast.Stmt]bool{}
	}
	f.heads[s] = true
}

func (f *finder) drop(s ast.Stmt) {
	if !f.heads[s] && !strings.HasPrefix(f.text(s), "panic(") {
		f.add(s, statement, "", "drop "+f.short(s))
	}
}

func (f *finder) literal(n *ast.BasicLit) {
	if n.Kind != token.INT {
		return
	}
	if number, err := strconv.ParseInt(n.Value, 0, 32); err == nil {
		other := strconv.FormatInt(2*number+1, 10)
		if number == 0 && f.kind(n) == "time.Duration" {
			other = strconv.FormatInt(time.Hour.Nanoseconds(), 10) // a nanosecond makes no difference
		}
		f.add(n, value, other, n.Value+" is "+other)
	}
}

func (f *finder) ident(n *ast.Ident) {
	switch name := f.next[n.Name]; {
	case n.Name == "true":
		f.add(n, condition, "false", "true is false")
	case n.Name == "false":
		f.add(n, condition, "true", "false is true")
	case name != "":
		f.add(n, value, name, n.Name+" is "+name)
	}
}
