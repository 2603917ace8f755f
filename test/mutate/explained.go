// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"
)

// equal is the outcome of a mutant that survives and makes no difference.
const equal outcome = "makes no difference"

// explained are mutants that make no difference, by their key, and why.
type explained map[string]string

// ofAll ends the key of all mutants of a function that make no difference while no test notices.
const ofAll = ": *"

// readExplained reads a list of mutants: a line for the key, and one with a tab
// before it that says why. Empty lines, and those with a #, are left out.
func readExplained(path string) (explained, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	known, key := explained{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		switch why, indented := strings.CutPrefix(line, "\t"); {
		case line == "", strings.HasPrefix(line, "#"):
		case indented:
			known[key] = why
		default:
			key = line
		}
	}
	return known, nil
}

// stale prints explained keys that are no mutants any more.
func (e explained) stale(codes []*code) {
	keys := map[string]bool{}
	for _, of := range codes {
		for _, m := range of.mutants {
			keys[m.key()], keys[m.file+" "+m.function+ofAll] = true, true
		}
	}
	for key := range e {
		if !keys[key] {
			fmt.Printf("explained, and no mutant any more: %s\n", key)
		}
	}
}

// why says why a mutant makes no difference; empty where that is not explained.
func (e explained) why(m mutant) string {
	return cmp.Or(e[m.key()], e[m.file+" "+m.function+ofAll])
}
