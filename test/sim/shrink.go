// SPDX-License-Identifier: Apache-2.0

package sim

import "strings"

const shrinkReplays = 3000

func Shrink(r Result) Result {
	if len(r.Broken) == 0 {
		return r
	}
	want := kindOf(r.Broken[0])
	fails := func(actions []Action) (Result, bool) {
		s := Replay(r.Config, actions, nil)
		return s, len(s.Broken) > 0 && kindOf(s.Broken[0]) == want
	}
	left := shrinkReplays
	best, ok := fails(r.Faulty)
	if !ok {
		return r // it depends on the dice: it stays unchanged
	}
	for size := max(1, len(best.Faulty)/2); ; size /= 2 {
		for at := 0; at < len(best.Faulty) && left > 0; left-- {
			shorter := append(append([]Action{}, best.Faulty[:at]...), best.Faulty[min(at+size, len(best.Faulty)):]...)
			if s, ok := fails(shorter); ok && len(s.Faulty) < len(best.Faulty) {
				best = s
			} else {
				at += size
			}
		}
		if size <= 1 || left <= 0 {
			return best
		}
	}
}

func kindOf(rule string) string {
	var words []string
	for _, w := range strings.Fields(rule) {
		if strings.Trim(w, "abcdefghijklmnopqrstuvwxyzAVI") == "" {
			words = append(words, w)
		}
	}
	return strings.Join(words[:min(len(words), 8)], " ")
}
