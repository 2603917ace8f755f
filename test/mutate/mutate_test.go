// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/format"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

const sample = `package p

const (
	first kind = iota + 1
	second
)

func (t *thing) decide(a, b int) kind {
	if a < b && !t.off {
		t.count = a
		return first
	}
	switch a {
	case 1, b:
		t.stop()
	}
	switch {
	case a == b:
		return second
	}
	select {
	case t.last = <-t.heard:
	case t.said <- a:
	}
	return first
}
`

func find(t *testing.T, source string) []mutant {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := &finder{set: set, source: []byte(source), path: "p.go", next: map[string]string{"first": "second", "second": "first"}}
	return numbered(f.find(file))
}

func TestEveryKindOfChange(t *testing.T) {
	var got []string
	for _, m := range find(t, sample) {
		if m.function == "thing.decide" {
			got = append(got, m.what)
		}
	}
	want := []string{
		"negate a < b && !t.off", "without && !t.off", "without a < b &&", "a < b with <=", "without the not of !t.off",
		"drop t.count = a", "first is second", "never case 1", "never case b", "1 is 3", "drop t.stop()",
		"never case a == b", "a == b with !=", "second is first", "first is second (2)",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found\n%q, want\n%q", got, want)
	}
}

func TestApply(t *testing.T) {
	for _, m := range find(t, sample) {
		changed := m.apply([]byte(sample))
		if _, err := format.Source(changed); err != nil {
			t.Errorf("%s: %v", m, err)
		}
		if m.what == "never case b" && !strings.Contains(string(changed), "case 1, 1:\n") ||
			m.what == "drop t.count = a" && !strings.Contains(string(changed), "{\n\t\t\n") ||
			m.what == "without a < b &&" && !strings.Contains(string(changed), "if !t.off {") {
			t.Errorf("%s makes\n%s", m, changed)
		}
	}
}

// Code may change without the list of explained mutants: only the command checks the list.
func TestMutantsHaveNames(t *testing.T) {
	if _, err := readExplained("testdata/explained.txt"); err != nil {
		t.Fatal(err)
	}
	checker, err := newChecker("../..")
	if err != nil {
		t.Fatal(err)
	}
	codes, err := readAll("../..", checker)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, of := range codes {
		if len(of.mutants) < 20 {
			t.Errorf("%s has %d mutants", of.folder, len(of.mutants))
		}
		for _, m := range of.mutants {
			if names[m.key()] {
				t.Errorf("two mutants are named %q", m.key())
			}
			names[m.key()] = true
		}
	}
}
