// SPDX-License-Identifier: Apache-2.0

// Package mutation reads lists of changes to the source that each take one
// rule out, and makes them. Tests of tests try them: each must be noticed.
//
// A list is made of blocks with empty lines between them:
//
//	# the rule that is taken out
//	path/of/the/file.go
//	-	the lines that are replaced,
//	+	and those that replace them
//	@ key value of a note, for whoever tries them
package mutation

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Mutation takes one rule out.
type Mutation struct {
	Rule, File   string
	Old, Changed string
	Notes        map[string]string
}

// ErrStale says that a mutation no longer fits the code.
var ErrStale = errors.New("does not fit the code any more: adapt the list")

// Read reads a list.
func Read(path string) ([]Mutation, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []Mutation
	for block := range strings.SplitSeq(string(text), "\n\n") {
		if m := parse(block); m.File != "" {
			list = append(list, m)
		}
	}
	return list, nil
}

func parse(block string) Mutation {
	m := Mutation{Notes: map[string]string{}}
	for line := range strings.SplitSeq(strings.TrimSuffix(block, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "# "):
			m.Rule = line[2:]
		case strings.HasPrefix(line, "@ "):
			key, value, _ := strings.Cut(line[2:], " ")
			m.Notes[key] = value
		case strings.HasPrefix(line, "-"):
			m.Old += line[1:] + "\n"
		case strings.HasPrefix(line, "+"):
			m.Changed += line[1:] + "\n"
		default:
			m.File = line
		}
	}
	return m
}

// Apply returns the file's text with the change made, where it fits first.
// Nothing is written.
func (m Mutation) Apply(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return "", err
	}
	if !strings.Contains(string(text), m.Old) {
		return "", fmt.Errorf("%q, to be found in %s:\n%s%w", m.Rule, m.File, m.Old, ErrStale)
	}
	return strings.Replace(string(text), m.Old, m.Changed, 1), nil
}
