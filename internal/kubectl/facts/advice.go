// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"regexp"
	"strings"

	"github.com/moorage-dev/moorage/docs"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Advice is what docs/reasons.md says of a reason.
type Advice struct{ Meaning, Changes, Do string }

// readAdvice reads the rows of the page's tables, whose form a test of the
// arbiter's checks.
func readAdvice() map[ledger.Code]Advice {
	advice := map[ledger.Code]Advice{}
	for line := range strings.Lines(docs.Reasons) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		advice[ledger.Code(strings.Trim(cells[0], "`"))] = Advice{
			Meaning: plain(cells[1]), Changes: plain(cells[2]), Do: plain(cells[3]),
		}
	}
	return advice
}

// adviceOn is what the page says of a reason: in a cluster without Moorage, without the
// sentences that are about what only Moorage has.
func (w *World) adviceOn(code ledger.Code) Advice {
	advice := w.advice[code]
	if w.Served() {
		return advice
	}
	return Advice{Meaning: advice.Meaning, Changes: ofKubernetes(advice.Changes), Do: ofKubernetes(advice.Do)}
}

// ofMoorage are the words by which a sentence is about what only Moorage has.
var ofMoorage = regexp.MustCompile(`AttachPolicy|AttachPolicies|moorage|Moorage|VolumeTicket|VolumeHold|[Pp]olicy's|ticket`)

// ofKubernetes are the sentences of a text, and the parts of each between semicolons, that are
// true without Moorage.
func ofKubernetes(text string) string {
	return keptParts(text, ". ", func(s string) string { return keptParts(s, "; ", keptPart) })
}

func keptParts(text, between string, kept func(string) string) string {
	var list []string
	for part := range strings.SplitSeq(text, between) {
		if part = kept(part); part != "" {
			list = append(list, part)
		}
	}
	return strings.Join(list, between)
}

func keptPart(text string) string {
	if ofMoorage.MatchString(strings.ReplaceAll(text, "kubectl moorage", "")) { // this program is there all the same
		return ""
	}
	return text
}

var pageLink = regexp.MustCompile(`\[([^]]*)\]\(([^)#]*)[^)]*\)`)

// plain takes the page's code marks out, and names the page that a link leads to: a
// terminal has neither.
func plain(text string) string {
	text = pageLink.ReplaceAllStringFunc(text, func(link string) string {
		parts := pageLink.FindStringSubmatch(link)
		if path := "docs/" + parts[2]; strings.HasSuffix(path, parts[1]) {
			return path
		}
		return parts[1] + " in docs/" + parts[2]
	})
	return strings.ReplaceAll(text, "`", "")
}
