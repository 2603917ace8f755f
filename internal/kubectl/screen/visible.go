// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// mark begins the escape sequences that this program makes. It has a number that each run
// draws anew: text that comes from the cluster or a file can't have it.
var mark = newMark()

func newMark() string {
	var raw [8]byte
	_, _ = rand.Read(raw[:]) // never fails
	return fmt.Sprintf("\x1b[%d;", binary.BigEndian.Uint64(raw[:]))
}

// plainMark is what a terminal gets in the place of mark.
const plainMark = "\x1b["

// visible is a writer of text for people: see Visible.
type visible struct{ to io.Writer }

// Visible returns a writer that shows control characters, and those that change the
// direction of text or show nothing, as escapes (\x1b, \u202e): names and messages come
// from drivers, tenants and files, and must not steer the reader's terminal. Only the
// colours of this package pass, and line ends and tabs.
func Visible(w io.Writer) io.Writer {
	if w == nil {
		return nil
	}
	return &visible{to: Raw(w)}
}

// Raw is the writer below Visible's, for what is not text for people; others are their own.
func Raw(w io.Writer) io.Writer {
	if v, ok := w.(*visible); ok {
		return v.to
	}
	return w
}

// Write writes whole characters: a part of one is shown as bytes.
func (v *visible) Write(raw []byte) (int, error) {
	if _, err := io.WriteString(v.to, strings.ReplaceAll(shown(string(raw)), mark, plainMark)); err != nil {
		return 0, err
	}
	return len(raw), nil
}

// shown is a text with escapes for what a terminal would obey or hide. The sequences of this
// program stay as they are.
func shown(text string) string {
	return escaped(text, "\n\t")
}

// shownLine is shown for text that must stay in its line and column.
func shownLine(text string) string {
	return escaped(text, "")
}

func escaped(text, keep string) string {
	var b strings.Builder
	for rest := text; rest != ""; {
		if strings.HasPrefix(rest, mark) {
			b.WriteString(mark)
			rest = rest[len(mark):]
			continue
		}
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, rest[0])
		case strconv.IsGraphic(r) || strings.ContainsRune(keep, r):
			b.WriteString(rest[:size])
		default:
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		rest = rest[size:]
	}
	return b.String()
}

// escapedJSON is a JSON text of the same value in which such characters, which stand in its
// strings only, are escapes. It is YAML, too: YAML knows no pairs of escapes for the rare
// characters beyond \uffff, which therefore stay.
func escapedJSON(raw string) string {
	var b strings.Builder
	for _, r := range raw {
		if strconv.IsGraphic(r) || strings.ContainsRune("\n\t\r", r) || r > 0xffff {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
