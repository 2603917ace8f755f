// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

type form uint8

const (
	condition form = iota // an expression that is true or false
	value                 // a constant
	result                // an expression that is calculated
	statement             // a statement that is left out
	fixed                 // a change that can't be switched
)

type mutant struct {
	id         int    // from 1
	file       string // from the module's root
	line       int
	function   string // with its receiver: detachPlan.release
	what       string // the change, in words and code
	begin, end int    // the bytes that are replaced
	text       string // their replacement
	form       form
	kind       string // the type of a value or result
}

// The key is the change, not its line, so that it survives changes of code above.
func (m mutant) key() string { return m.file + " " + m.function + ": " + m.what }

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d %s: %s", m.file, m.line, m.function, m.what)
}

func (m mutant) apply(source []byte) []byte {
	changed := append([]byte{}, source[:m.begin]...)
	changed = append(changed, m.text...)
	return append(changed, source[m.end:]...)
}

type finder struct {
	set      *token.FileSet
	source   []byte
	path     string
	next     map[string]string // a constant -> the next one of its kind
	types    *types.Info       // nil: not known
	folder   *types.Package
	function string
	constant bool              // in the values of constants
	heads    map[ast.Stmt]bool // statements in the head of another one
	found    []mutant
}

func (f *finder) add(n ast.Node, form form, text, what string) {
	at := f.set.Position(n.Pos())
	m := mutant{
		file: f.path, line: at.Line, function: f.function, what: what,
		begin: at.Offset, end: f.set.Position(n.End()).Offset, text: text, form: form,
	}
	if f.constant {
		m.form = fixed
	}
	if e, ok := n.(ast.Expr); ok && (m.form == value || m.form == result) {
		if m.kind = f.kind(e); m.kind == "" {
			m.form = fixed
		}
	}
	f.found = append(f.found, m)
}

// kind is empty if the file can't name the type.
func (f *finder) kind(e ast.Expr) string {
	if f.types == nil {
		return ""
	}
	t := f.types.TypeOf(e)
	if basic, ok := t.(*types.Basic); t == nil || ok && basic.Info()&types.IsUntyped != 0 {
		return ""
	}
	return types.TypeString(t, func(p *types.Package) string {
		if p == f.folder {
			return ""
		}
		return p.Name()
	})
}

func (f *finder) text(n ast.Node) string {
	return string(f.source[f.set.Position(n.Pos()).Offset:f.set.Position(n.End()).Offset])
}

func (f *finder) short(n ast.Node) string {
	const most = 90
	text := strings.Join(strings.Fields(f.text(n)), " ")
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}
