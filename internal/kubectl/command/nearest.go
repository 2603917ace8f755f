// SPDX-License-Identifier: Apache-2.0

package command

import "strings"

// mostTypos is how many letters a name may differ by to be suggested.
const mostTypos = 2

// Nearest is the name among those known that was probably meant; empty when none
// is near: by no more than two letters, and no more than half of them.
func Nearest(name string, known []string) string {
	best, least := "", mostTypos+1
	for _, k := range known {
		d := distance(name, k)
		if strings.HasPrefix(k, name) && len(name) > 2 {
			d = min(d, 1)
		}
		if d < least && 2*d <= len([]rune(name)) {
			best, least = k, d
		}
	}
	return best
}

// distance is Levenshtein's: how many letters have to be added, taken away or
// replaced.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		before := row[0]
		row[0] = i + 1
		for j := range y {
			cost := before
			if x[i] != y[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, before+1)
		}
	}
	return row[len(y)]
}
