// SPDX-License-Identifier: Apache-2.0

package explore

import "slices"

// Shorten drops unneeded moves: the search goes deep first, with long ways. An endless path stays
// unchanged.
func Shorten(config Config, r Report) Report {
	fault, path := replay(config, r.Path)
	if fault == "" {
		return r
	}
	best := r
	best.Fault, best.Path = fault, path
	for size := max(1, len(best.Path)/2); ; size /= 2 {
		for at := 0; at < len(best.Path); {
			shorter := slices.Delete(slices.Clone(best.Path), at, min(at+size, len(best.Path)))
			if f, path := replay(config, shorter); f == fault && len(path) < len(best.Path) {
				best.Path = path
			} else {
				at += size
			}
		}
		if size <= 1 {
			return best
		}
	}
}

func replay(config Config, path []string) (fault string, made []string) {
	s := begin(config)
	for _, what := range path {
		moves := s.moves()
		i := slices.IndexFunc(moves, func(m move) bool { return m.what == what })
		if i < 0 {
			continue
		}
		made = append(made, what)
		s = s.after(moves[i])
		if fault := s.broken(); fault != "" {
			return fault, made
		}
	}
	if slices.ContainsFunc(s.moves(), func(m move) bool { return m.settling }) {
		return "", made
	}
	return s.unsettled(), made
}
