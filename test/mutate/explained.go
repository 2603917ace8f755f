// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"
)

const equal outcome = "makes no difference"

// explained has the reason why a mutant makes no difference, by its key.
type explained map[string]string

// All mutants of the function make no difference while no test notices.
const ofAll = ": *"

// A line has the key, and the next line with a tab the reason. Empty lines and # lines are skipped.
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

func (e explained) why(m mutant) string {
	return cmp.Or(e[m.key()], e[m.file+" "+m.function+ofAll])
}
