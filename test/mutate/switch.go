// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const switchFile = "mutate_switch.go"

// Environment variables: the active mutant, and the file for the numbers of reached mutants.
const (
	envActive  = "MUTATE_ACTIVE"
	envReached = "MUTATE_REACHED"
)

// The marks lead a compiler's error back to its mutant.
const (
	beginMark = "/*mutant "
	endMark   = "/*end*/"
)

func switches(name string, last int) []byte {
	return fmt.Appendf(nil, `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var mutateActive, _ = strconv.Atoi(os.Getenv(%q))

var mutateReached = func() *os.File {
	f, _ := os.OpenFile(os.Getenv(%q), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	return f
}()

var mutateSeen [1 << 16]atomic.Bool // of %d

func mutateOn(id int) bool {
	if mutateReached != nil && !mutateSeen[id].Swap(true) {
		_, _ = mutateReached.WriteString(strconv.Itoa(id) + "\n")
	}
	return id == mutateActive
}

func mutatePick[T any](id int, is, other T) T {
	if mutateOn(id) {
		return other
	}
	return is
}
`, name, envActive, envReached, last)
}

type group struct {
	begin, end int
	mutants    []mutant
	inner      []*group
}

func switched(source []byte, mutants []mutant, path string) []byte {
	var list []mutant
	for _, m := range mutants {
		if m.file == path && m.form != fixed {
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(a, b mutant) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(b.end, a.end)) })
	all := &group{end: len(source)}
	open := []*group{all}
	for _, m := range list {
		for open[len(open)-1].end <= m.begin && len(open) > 1 {
			open = open[:len(open)-1]
		}
		around := open[len(open)-1]
		if len(open) == 1 || around.begin != m.begin || around.end != m.end {
			g := &group{begin: m.begin, end: m.end}
			around.inner = append(around.inner, g)
			open = append(open, g)
			around = g
		}
		around.mutants = append(around.mutants, m)
	}
	return []byte(all.text(source))
}

func (g *group) text(source []byte) string {
	var b strings.Builder
	at := g.begin
	for _, inner := range g.inner {
		b.Write(source[at:inner.begin])
		b.WriteString(inner.text(source))
		at = inner.end
	}
	b.Write(source[at:g.end])
	text := b.String()
	for _, m := range g.mutants {
		text = fmt.Sprintf(" %s%d*/", beginMark, m.id) + m.around(text) + endMark
	}
	return text
}

func (m mutant) around(text string) string {
	switch m.form {
	case condition:
		return fmt.Sprintf("(mutateOn(%d) && (%s) || !mutateOn(%d) && (%s))", m.id, m.text, m.id, text)
	case value:
		return fmt.Sprintf("mutatePick[%s](%d, %s, %s)", m.kind, m.id, text, m.text)
	case result:
		return fmt.Sprintf("func() %s { if mutateOn(%d) { return %s }; return %s }()", m.kind, m.id, m.text, text)
	case statement:
		return fmt.Sprintf("if !mutateOn(%d) { %s }", m.id, text)
	case fixed:
	}
	return text
}
