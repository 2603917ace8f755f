// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"strconv"
	"strings"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// The signs of a bar of slots, in their order: they tell the kinds apart
// without colour, too.
const (
	signUsed     = "█"
	signKept     = "▓"
	signLeaving  = "▒"
	signUnknown  = "▚"
	signReserved = "░"
	signFree     = "·"
)

// A bar has no more signs than there is room for beside a row's other cells; one sign then
// stands for several slots.
const (
	leastSigns = 15
	mostSigns  = 40
)

func (s Style) signs() int { return min(max(s.Columns()-plainWidth+leastSigns, leastSigns), mostSigns) }

// BarLegend explains the bar.
const BarLegend = signUsed + " used  " + signKept + " kept by detachDelay  " + signLeaving + " leaving  " + signUnknown + " unknown  " + signReserved + " reserved  " + signFree + " free"

// Slots is the table of nodes and their drivers' slots. The bar is for
// terminals.
func Slots(list []facts.Slots, s Style) *Table {
	columns := []string{"NODE", "DRIVER", "-TAKEN", "+USED", "+KEPT", "+LEAVING", "+UNKNOWN", "+RESERVED", "+FREE", "+LIMIT"}
	if s.Terminal {
		columns = append(columns, "SLOTS")
	}
	t := newTable(append(columns, "-NOTE", "+NOTE")...)
	for _, x := range list {
		cells := []string{
			x.Node, x.Driver, taken(x), number(int(x.Used)), number(int(x.Kept)), number(int(x.Leaving)), number(int(x.Unknown)), number(int(x.Reserved)),
			limited(x.Free), limited(x.Limit),
		}
		if s.Terminal {
			cells = append(cells, bar(x, s.signs()))
		}
		notes := notesOf(x)
		first := strings.Join(notes, ", ")
		if len(notes) > 1 {
			first = notes[0] + " +" + number(len(notes)-1)
		}
		t.add(x.Node+"/"+x.Driver, append(cells, orNone(first), orNone(strings.Join(notes, ", ")))...)
	}
	return t
}

// taken is how many slots are taken, of how many.
func taken(x facts.Slots) string {
	n := number(int(x.Taken()))
	if x.Limit == nil {
		return n + "/∞"
	}
	return n + "/" + number(int(*x.Limit))
}

// notesOf is what else there is to know of a row, what matters most first.
func notesOf(x facts.Slots) []string {
	var notes []string
	if x.NotVisible {
		notes = append(notes, "node can't be seen")
	}
	switch {
	case x.Missing:
		return append(append(notes, "no such Node"), notesOfWord(x)...) // which has no CSINode either
	case !x.Ready && x.OutOfService:
		notes = append(notes, "not ready, tainted")
	case !x.Ready:
		notes = append(notes, "node not ready")
	case x.OutOfService:
		notes = append(notes, "out of service")
	}
	switch {
	case !x.Registered:
		notes = append(notes, "not registered")
	case x.Exhausted:
		notes = append(notes, "ResourceExhausted")
	}
	if x.Limit != nil && x.Taken() > *x.Limit {
		notes = append(notes, number(int(x.Taken()-*x.Limit))+" over the limit")
	}
	notes = append(notes, notesOfWord(x)...)
	if x.Cordoned {
		notes = append(notes, "cordoned")
	}
	if x.Stated != nil && x.Limit != nil && *x.Stated != *x.Limit {
		notes = append(notes, "CSINode says "+number(int(*x.Stated)))
	}
	return notes
}

// notesOfWord is what the node says of itself.
func notesOfWord(x facts.Slots) []string {
	var notes []string
	add := func(n int32, what string) {
		if n > 0 {
			notes = append(notes, number(int(n))+" "+what)
		}
	}
	add(x.Leaked, "leaked")
	add(x.NoAttachment, "without attachment")
	add(x.PodsGone, "without pod")
	add(x.Unanswered, "unstage unanswered")
	words := map[string]string{facts.WordSilent: "moorage-node silent", facts.WordOfBoot: "moorage-node of old boot", facts.WordOfNode: "moorage-node of old node", facts.WordNoKubeletBoot: "no bootID", facts.WordNoBoot: "moorage-node without boot", facts.WordPartial: "not all readable"}
	if word := words[x.Word]; word != "" {
		notes = append(notes, word)
	}
	return notes
}

// bar draws the slots in their order, scaled down where there are many. What
// is there at all is seen: no kind is rounded to nothing.
func bar(x facts.Slots, most int) string {
	free := int32(0)
	if x.Free != nil {
		free = *x.Free
	}
	parts := []struct {
		sign  string
		slots int32
	}{{signUsed, x.Used}, {signKept, x.Kept}, {signLeaving, x.Leaving}, {signUnknown, x.Unknown}, {signReserved, x.Reserved}, {signFree, free}}
	length := func(per int32) int {
		signs := 0
		for _, p := range parts {
			signs += int((p.slots + per - 1) / per)
		}
		return signs
	}
	per := int32(1)
	for length(per) > most {
		per++
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(strings.Repeat(p.sign, int((p.slots+per-1)/per)))
	}
	if x.Limit == nil {
		b.WriteString("…")
	}
	return b.String()
}

// paintBars colours the signs of bars in text that is laid out already.
func (s Style) paintBars(text string) string {
	if !s.Colour {
		return text
	}
	colours := map[rune]colour{'█': blue, '▓': yellow, '▒': red, '▚': red, '░': green, '·': faint}
	var b strings.Builder
	var run []rune
	flush := func() {
		if len(run) > 0 {
			b.WriteString(s.paint(colours[run[0]], string(run)))
			run = run[:0]
		}
	}
	for _, r := range text {
		if len(run) > 0 && r != run[0] {
			flush()
		}
		if _, sign := colours[r]; sign {
			run = append(run, r)
			continue
		}
		b.WriteRune(r)
	}
	flush()
	return b.String()
}

func limited(n *int32) string {
	if n == nil {
		return "no limit"
	}
	return number(int(*n))
}

func number(n int) string { return strconv.Itoa(n) }
