// SPDX-License-Identifier: Apache-2.0

// Package words finds words that readers of Moorage's texts stumbled over.
package words

import (
	"fmt"
	"regexp"
	"strings"
)

var riddles = []struct{ words, say string }{
	{`told`, "who writes or reports what, and where"},
	{`read it so`, "how to read it"},
	{`for nobody`, "no pod uses it"},
	{`given back`, "released, or gives way"},
	{`its kubelet's word`, "its kubelet's report"},
	{`rules? of force`, "forced detach"},
	{`(no|is a) mystery`, "what it says"},
	{`unhurried`, "in the background"},
	{`it may be that`, "perhaps"},
	{`that there (is|are) none of`, "unknown"},
	{`who has it`, "where it is, or who uses it"},
	{`(is|are) said of`, "what X says about it"},
	{`(is|are) seen to keep`, "is known to keep it from running"},
	{`what (is|they) waited? for`, "what it waits for"},
	{`what became of`, "the result"},
	{`nobody's concern`, "ignored"},
	{`stands? on (it|them|that)`, "depends on"},
	{`it wants (the|a|no|that)`, "needs"},
	{`for ever`, "forever"},
	{`begun again`, "started again"},
	{`broken off`, "interrupted"},
	{`but for`, "except"},
	{`in the place of`, "in place of"},
	{`the way out`, "how to undo or to leave it"},
	{`whatever becomes of`, "in any case"},
	{`it is not \w+ that it`, "the plain sentence: subject, verb, object"},
}

var patterns = func() []*regexp.Regexp {
	var list []*regexp.Regexp
	for _, r := range riddles {
		list = append(list, regexp.MustCompile(`(?i)\b(`+strings.ReplaceAll(r.words, " ", `\s+`)+`)\b`))
	}
	return list
}()

// Riddles lists the found words with replacements. Words may stand on two lines.
func Riddles(text string) []string {
	var found []string
	for i, p := range patterns {
		for _, at := range p.FindAllStringIndex(text, -1) {
			from := max(0, strings.LastIndex(text[:at[0]], "\n")+1)
			to := len(text)
			if end := strings.Index(text[at[1]:], "\n"); end >= 0 {
				to = at[1] + end
			}
			found = append(found, fmt.Sprintf("%q: say %s, in: %s", text[at[0]:at[1]], riddles[i].say, text[from:to]))
		}
	}
	return found
}
