// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"strings"
)

// mutant is one change of one file.
type mutant struct {
	file       string // from the module's root
	line       int
	function   string // with its receiver: planner.release
	what       string // the change, in words and code
	begin, end int    // the bytes that are replaced
	text       string // what replaces them
}

// key names a mutant by what it changes and not by its line, so that it keeps its
// name when code above it changes.
func (m mutant) key() string { return m.file + " " + m.function + ": " + m.what }

func (m mutant) String() string {
	return fmt.Sprintf("%s:%d %s: %s", m.file, m.line, m.function, m.what)
}

// apply returns the file's text with the change made.
func (m mutant) apply(source []byte) []byte {
	changed := append([]byte{}, source[:m.begin]...)
	changed = append(changed, m.text...)
	return append(changed, source[m.end:]...)
}

// finder collects the mutants of one file.
type finder struct {
	set      *token.FileSet
	source   []byte
	path     string
	next     map[string]string // a constant -> the next one of its kind
	function string
	found    []mutant
}

// add adds the mutant that replaces a node.
func (f *finder) add(n ast.Node, text, what string) {
	at := f.set.Position(n.Pos())
	f.found = append(f.found, mutant{
		file: f.path, line: at.Line, function: f.function, what: what,
		begin: at.Offset, end: f.set.Position(n.End()).Offset, text: text,
	})
}

// text is a node's source.
func (f *finder) text(n ast.Node) string {
	return string(f.source[f.set.Position(n.Pos()).Offset:f.set.Position(n.End()).Offset])
}

// short is a node's source on one line, cut where it is long.
func (f *finder) short(n ast.Node) string {
	const most = 90
	text := strings.Join(strings.Fields(f.text(n)), " ")
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

// nameOf is a function's name with its receiver's type.
func nameOf(d *ast.FuncDecl) string {
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

// formatted says whether a text is a Go file.
func formatted(text []byte) error {
	_, err := format.Source(text)
	return err
}
