// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"

	"github.com/moorage-dev/moorage/test/internal/breaks"
)

// A mutant takes one rule out of the core. testdata/mutants.txt lists them in blocks
// with empty lines between them:
//
//	# the rule that is taken out
//	a break, or several
//	@ key value of a note
type mutant struct {
	rule   string
	breaks []breaks.Break
	notes  map[string]string
}

func readMutants(path string) ([]mutant, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []mutant
	for block := range strings.SplitSeq(string(text), "\n\n") {
		if m := parseMutant(block); len(m.breaks) > 0 {
			list = append(list, m)
		}
	}
	return list, nil
}

func parseMutant(block string) mutant {
	m := mutant{notes: map[string]string{}}
	for line := range strings.SplitSeq(strings.TrimSpace(block), "\n") {
		switch kind, rest, _ := strings.Cut(line, " "); kind {
		case "#":
			m.rule = rest
		case "@":
			key, value, _ := strings.Cut(rest, " ")
			m.notes[key] = value
		default:
			m.breaks = append(m.breaks, breaks.Break(line))
		}
	}
	return m
}

func rulesOf(mutants []mutant) map[string][]breaks.Break {
	rules := map[string][]breaks.Break{}
	for _, m := range mutants {
		rules[m.rule] = m.breaks
	}
	return rules
}
