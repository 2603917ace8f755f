// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A mutant takes one rule out of the core. testdata/mutants.txt lists them in blocks
// with empty lines between them:
//
//	# the rule that is taken out
//	name change
//	@ key value of a note
//
// The code that is changed has the comment //mutant:name at the end of its line. The
// change is one of those of change.apply. A mutant may have several.
type mutant struct {
	rule    string
	changes []change
	notes   map[string]string
}

// folders hold the code that has markers.
var folders = []string{"internal/ledger", "internal/rules", "internal/protocol", "internal/write"}

// errMarker says that a marker is not there, or not where it can be.
var errMarker = errors.New("must stand once, at the end of the line on which what it changes begins")

// readMutants reads the list.
func readMutants(path string) ([]mutant, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []mutant
	for block := range strings.SplitSeq(string(text), "\n\n") {
		if m := parseMutant(block); len(m.changes) > 0 {
			list = append(list, m)
		}
	}
	return list, nil
}

func parseMutant(block string) mutant {
	m := mutant{notes: map[string]string{}}
	for line := range strings.SplitSeq(strings.TrimSuffix(block, "\n"), "\n") {
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "":
		case "#":
			m.rule = rest
		case "@":
			key, value, _ := strings.Cut(rest, " ")
			m.notes[key] = value
		default:
			how, text, _ := strings.Cut(rest, " ")
			m.changes = append(m.changes, change{marker: kind, how: how, text: text})
		}
	}
	return m
}

// apply returns the changed files, by their path from the module's root. Nothing is
// written.
func (m mutant) apply(root string) (map[string]string, error) {
	changed := map[string]string{}
	for _, c := range m.changes {
		file, err := c.file(root)
		if err != nil {
			return nil, err
		}
		text, ok := changed[file]
		if !ok {
			read, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				return nil, err
			}
			text = string(read)
		}
		if changed[file], err = c.apply(text); err != nil {
			return nil, fmt.Errorf("%s in %s: %w", c.marker, file, err)
		}
	}
	return changed, nil
}

// comment is the marker of a change as it stands in the code.
func (c change) comment() string { return "//mutant:" + c.marker + "\n" }

// file is the file that has the marker, from the module's root.
func (c change) file(root string) (string, error) {
	found := ""
	for _, folder := range folders {
		paths, err := fs.Glob(os.DirFS(root), folder+"/*.go")
		if err != nil {
			return "", err
		}
		for _, path := range paths {
			text, err := os.ReadFile(filepath.Join(root, path))
			if err != nil {
				return "", err
			}
			switch n := strings.Count(string(text), c.comment()); {
			case n == 1 && found == "":
				found = path
			case n > 0:
				return "", fmt.Errorf("mutant:%s %w", c.marker, errMarker)
			}
		}
	}
	if found == "" {
		return "", fmt.Errorf("mutant:%s %w", c.marker, errMarker)
	}
	return found, nil
}
