// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Style is how text is set. The zero value is for a file or a pipe.
type Style struct {
	// Terminal: colours and bars are shown.
	Terminal bool
	// Colour is off on a terminal with NO_COLOR (https://no-color.org).
	Colour bool
	// Width to wrap at, in columns; 0 for plainWidth.
	Width int
	// Height of the terminal in lines; 0 when it is not known.
	Height int
	// Bundle is the file that is asked in place of a cluster; empty for a cluster.
	Bundle string
	// Flags are those by which the user named the cluster, as a shell takes them: commands to
	// run next have them too, or they would act on another one.
	Flags string
	// UnseenSaid: what could not be read has been said already, above.
	UnseenSaid bool
	// LiveSaid: LiveNote stands above already.
	LiveSaid bool
}

// Widths of text: of a pipe's, and the most that is pleasant to read.
const (
	plainWidth = 80
	mostWidth  = 120
	leastWidth = 40
)

// StyleOf is the style that suits a writer.
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

// colour is an SGR parameter.
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

// Wrap breaks text between words so that each line, with the indent before it,
// fits. The first line has no indent: a label stands there.
func (s Style) Wrap(text string, indent int) string {
	text, live := strings.CutSuffix(s.Linked(text), "\n"+LiveNote)
	lines := s.wrapped(text, indent)
	if live {
		lines += "\n" + strings.Repeat(" ", indent) + s.wrapped(LiveNote, indent)
	}
	return lines
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

// pages is where the pages of docs are read: who has this program need not have them.
const pages = "https://github.com/moorage-dev/moorage/blob/main/"

// pageName is the name of a page in a text, with what comes before it.
var pageName = regexp.MustCompile(`(^|[\s(])(docs/[a-z0-9/_-]+\.md)`)

// asks is how a command begins that a bundle can answer; acts, one of kubectl's own, or one
// that a bundle can't answer: it asks or changes a cluster.
var (
	asks = regexp.MustCompile(`\bkubectl moorage (explain|volumes|nodes|tickets|ticket explain|drain-plan|doctor|top|web)\b`)
	acts = regexp.MustCompile(`\bkubectl (moorage )?(attach|detach|ticket (make|renew|end)|bundle|-n|get|describe|logs|auth|taint|label|annotate|delete|patch|apply|uncordon|cordon|drain|rollout|scale)\b`)
)

// LiveNote stands behind a command that asks or changes a cluster where a bundle advises it.
const LiveNote = "(This file can't answer that command: it acts on a cluster, your current context's unless --context names another.)"

// Linked is a text in which pages of docs have their addresses, and commands to run next
// ask what was asked: the same file, or the same cluster.
func (s Style) Linked(text string) string {
	return s.Asking(pageName.ReplaceAllString(text, "${1}"+pages+"${2}"))
}

// Asking is a text whose commands to run next ask what was asked. Where a file was asked that
// can't answer one of them, LiveNote follows on a line of its own.
func (s Style) Asking(text string) string {
	note := ""
	if s.Bundle != "" && !s.LiveSaid && acts.MatchString(text) && !strings.HasSuffix(text, LiveNote) {
		note = "\n" + LiveNote
	}
	ask := s.Flags
	if s.Bundle != "" {
		ask = "--bundle " + Quoted(s.Bundle)
	}
	text = with(ask, asks, text)
	return with(s.Flags, acts, text) + note
}

// with is a text whose commands of a kind have flags. Those of a plugin stand behind its name.
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

// Quoted is a word as a shell takes it.
func Quoted(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// plainWord is one that a shell takes as it is.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:@-]+$`)

// ago is an age as kubectl get shows it; "-" when the time is not known.
func ago(now, t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(0, now.Sub(t)))
}
