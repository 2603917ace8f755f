// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/token"
	"slices"

	"github.com/moorage-dev/moorage/test/internal/breaks"
)

func settle(c *breaks.Checker, of *code) ([][]byte, error) {
	for {
		var texts [][]byte
		for i, path := range of.paths {
			texts = append(texts, switched(of.sources[i], of.mutants, path))
		}
		texts = append(texts, switches(of.name, len(of.mutants)))
		set := token.NewFileSet()
		files, err := breaks.Parse(set, append(slices.Clone(of.paths), of.folder+"/"+switchFile), func(i int) ([]byte, error) { return texts[i], nil })
		if err != nil {
			return nil, err
		}
		_, faults := c.Check(set, files, nil)
		if len(faults) == 0 {
			return texts, nil
		}
		settled := false
		for _, fault := range faults {
			for i, file := range files {
				if file.FileStart <= fault.Pos && fault.Pos < file.FileEnd {
					if id := around(texts[i], set.Position(fault.Pos).Offset); id > 0 && of.mutant(id).form != fixed {
						of.mutant(id).form, settled = fixed, true
					}
				}
			}
		}
		if !settled {
			return nil, fmt.Errorf("%s: %w", set.Position(faults[0].Pos), faults[0])
		}
	}
}

func (of *code) mutant(id int) *mutant { return &of.mutants[id-of.mutants[0].id] }

// around is the innermost switch around a place, or the next before it.
func around(text []byte, at int) int {
	open := bytes.LastIndex(text[:min(at+1, len(text))], []byte(beginMark))
	if open < 0 {
		return 0
	}
	depth := 0
	for i := at; i >= 0; i-- {
		switch rest := text[i:]; {
		case bytes.HasPrefix(rest, []byte(endMark)) && i+len(endMark) <= at:
			depth++
		case bytes.HasPrefix(rest, []byte(beginMark)) && depth > 0:
			depth--
		case bytes.HasPrefix(rest, []byte(beginMark)):
			var id int
			_, _ = fmt.Sscanf(string(rest[len(beginMark):]), "%d", &id)
			return id
		}
	}
	return 0
}
