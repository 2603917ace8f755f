// SPDX-License-Identifier: Apache-2.0

package command

import "strings"

// Nearest is the name among those known that was probably meant; empty when none is near: a
// letter or two that neighbours have changed places, or that are missing, too many or others, one
// in four at most. Names that differ by their digits only, such as db-0 and db-1, are those of
// different things.
func Nearest(name string, known []string) string {
	best, least := "", mostTypos(name)+1
	for _, k := range known {
		d := distance(name, k)
		if strings.HasPrefix(k, name) && len(name) > 2 {
			d = min(d, 1)
		}
		if d < least && withoutDigits(name) != withoutDigits(k) {
			best, least = k, d
		}
	}
	return best
}

// mostTypos is how many letters of a name may be wrong for another one to be suggested.
func mostTypos(name string) int {
	switch n := len([]rune(name)); {
	case n < 3:
		return 0
	case n < 8:
		return 1
	}
	return 2
}

func withoutDigits(name string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, name)
}

// distance is Damerau's: how many letters have to be added, taken away, replaced, or changed for
// their neighbour.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	d := make([][]int, len(x)+1)
	for i := range d {
		d[i] = make([]int, len(y)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			cost := d[i-1][j-1]
			if x[i-1] != y[j-1] {
				cost++
			}
			d[i][j] = min(cost, d[i-1][j]+1, d[i][j-1]+1)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(x)][len(y)]
}
