// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Style is how text is set; zero: for a file or a pipe.
type Style struct {
	Terminal bool
	// Colour is off with NO_COLOR (https://no-color.org).
	Colour bool
	// Width is in columns; 0: plainWidth.
	Width int
	// Height is in lines; 0: unknown.
	Height int
	// Bundle is the file that replaces a cluster, or empty.
	Bundle string
	// Flags are the user's quoted cluster flags. Suggested commands repeat them, to act on the same
	// cluster.
	Flags string
	// UnseenSaid: the unread kinds are already named.
	UnseenSaid bool
}

// Widths of text: a pipe's, and the widest readable.
const (
	plainWidth = 80
	mostWidth  = 120
	leastWidth = 40
)

// StyleOf suits a writer.
func StyleOf(w io.Writer) Style {
	file, ok := Raw(w).(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return Style{}
	}
	s := Style{Terminal: true, Colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if width, height, err := term.GetSize(int(file.Fd())); err == nil {
		s.Width, s.Height = min(max(width, leastWidth), mostWidth), height
	}
	return s
}

type colour string

const (
	bold   colour = "1"
	faint  colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	blue   colour = "34"
)

func (s Style) paint(c colour, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return mark + string(c) + "m" + text + mark + "0m"
}

// Columns is how wide text may be.
func (s Style) Columns() int {
	if s.Width == 0 {
		return plainWidth
	}
	return s.Width
}

// ownLine is a command between code marks, with punctuation.
var ownLine = regexp.MustCompile("`(kubectl [^`]+)`[.,;:)]*")

// Wrap fits each line with its indent; the first line has a label instead. A command gets its own line
// without punctuation, for copying.
func (s Style) Wrap(text string, indent int) string {
	margin := "\n" + strings.Repeat(" ", indent)
	var parts []string
	for rest := s.Linked(text); rest != ""; {
		command := ownLine.FindStringSubmatchIndex(rest)
		if command == nil {
			command = []int{len(rest), len(rest), 0, 0}
		}
		for _, part := range []string{s.wrapped(rest[:command[0]], indent), rest[command[2]:command[3]]} {
			if part != "" {
				parts = append(parts, part)
			}
		}
		rest = rest[command[1]:]
	}
	return strings.Join(parts, margin)
}

func (s Style) wrapped(text string, indent int) string {
	room := max(s.Columns()-indent, leastWidth/2)
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		size := len([]rune(word))
		switch {
		case column == 0:
		case column+1+size > room:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += size
	}
	return b.String()
}

// pages is public, since a user may not have docs.
const pages = "https://github.com/moorage-dev/moorage/blob/main/"

// pageName includes the character before it.
var pageName = regexp.MustCompile(`(^|[\s(])(docs/[a-z0-9/_-]+\.md)`)

// A bundle can answer asks, but not acts: kubectl's own commands, and commands for a cluster.
var (
	asks = regexp.MustCompile(`\bkubectl moorage (explain|volumes|nodes|tickets|ticket explain|drain-plan|doctor|top|web)\b`)
	acts = regexp.MustCompile(`\bkubectl (moorage )?(attach|detach|ticket (make|renew|end)|bundle|-n|get|describe|logs|auth|taint|label|annotate|delete|patch|apply|uncordon|cordon|drain|rollout|scale)\b`)
)

// Linked is Asking, with the addresses of docs' pages.
func (s Style) Linked(text string) string {
	return s.Asking(pageName.ReplaceAllString(text, "${1}"+pages+"${2}"))
}

// Asking lets suggested commands ask the same file or cluster.
func (s Style) Asking(text string) string {
	ask := s.Flags
	if s.Bundle != "" {
		ask = "--bundle " + Quoted(s.Bundle)
	}
	return with(s.Flags, acts, with(ask, asks, text))
}

// with puts flags after a plugin's name.
func with(flags string, commands *regexp.Regexp, text string) string {
	if flags == "" {
		return text
	}
	return commands.ReplaceAllStringFunc(text, func(command string) string {
		if rest, ok := strings.CutPrefix(command, "kubectl moorage "); ok {
			return "kubectl moorage " + flags + " " + rest
		}
		return "kubectl " + flags + strings.TrimPrefix(command, "kubectl")
	})
}

// Quoted is a word for a shell.
func Quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@-]+$`)

// ago is an age as in kubectl get; "-": unknown.
func ago(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(0, now.Sub(t)))
}

// mark has a random number in each run, so that foreign text can't contain this program's escape sequences.
var mark = newMark()

func newMark() string {
	var raw [8]byte
	_, _ = rand.Read(raw[:]) // never fails
	return fmt.Sprintf("\x1b[%d;", binary.BigEndian.Uint64(raw[:]))
}

const plainMark = "\x1b["

type visible struct{ to io.Writer }

// Visible returns a writer that escapes control and invisible characters and changes of direction: foreign
// text must not steer a terminal. This package's colours, line ends and tabs pass.
func Visible(w io.Writer) io.Writer {
	if w == nil {
		return nil
	}
	return &visible{to: Raw(w)}
}

// Raw is the writer below Visible's, for programs' output; other writers pass unchanged.
func Raw(w io.Writer) io.Writer {
	if v, ok := w.(*visible); ok {
		return v.to
	}
	return w
}

// Write shows a partial character as bytes.
func (v *visible) Write(raw []byte) (int, error) {
	if _, err := io.WriteString(v.to, strings.ReplaceAll(shown(string(raw)), mark, plainMark)); err != nil {
		return 0, err
	}
	return len(raw), nil
}

// shown escapes foreign characters that a terminal would obey or hide.
func shown(text string) string {
	return escaped(text, "\n\t")
}

// shownLine is shown for text in a line and column.
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

// escapedJSON is the same JSON, and YAML: characters beyond \uffff stay, since YAML has no escape pairs.
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
