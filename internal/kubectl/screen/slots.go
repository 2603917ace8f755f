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
	signReserved = "░"
	signFree     = "·"
)

// mostSigns bounds a bar; one sign then stands for several slots.
const mostSigns = 40

// BarLegend explains the bar.
const BarLegend = signUsed + " used  " + signKept + " kept by detachDelay  " + signLeaving + " leaving  " + signReserved + " reserved  " + signFree + " free"

// Slots is the table of nodes and their drivers' slots. The bar is for
// terminals.
func Slots(list []facts.Slots, s Style) *Table {
	columns := []string{"NODE", "DRIVER", "USED", "KEPT", "LEAVING", "RESERVED", "FREE", "LIMIT", "NOTE"}
	if s.Terminal {
		columns = append(columns, "SLOTS")
	}
	t := newTable(columns...)
	for _, x := range list {
		cells := []any{
			x.Node, x.Driver, number(int(x.Used)), number(int(x.Kept)), number(int(x.Leaving)), number(int(x.Reserved)),
			limited(x.Free), limited(x.Limit), note(x),
		}
		if s.Terminal {
			cells = append(cells, bar(x))
		}
		t.add(x.Node+"/"+x.Driver, cells...)
	}
	return t
}

func note(x facts.Slots) string {
	var notes []string
	if !x.Ready {
		notes = append(notes, "node not ready")
	}
	if x.OutOfService {
		notes = append(notes, "taint out-of-service")
	}
	if x.Cordoned {
		notes = append(notes, "cordoned")
	}
	switch {
	case !x.Registered:
		notes = append(notes, "driver not registered")
	case x.Exhausted:
		notes = append(notes, "ResourceExhausted")
	}
	if x.Stated != nil && x.Limit != nil && *x.Stated != *x.Limit {
		notes = append(notes, "CSINode says "+number(int(*x.Stated)))
	}
	return orNone(strings.Join(notes, ", "))
}

// bar draws the slots in their order, scaled down where there are many. What
// is there at all is seen: no kind is rounded to nothing.
func bar(x facts.Slots) string {
	free := int32(0)
	if x.Free != nil {
		free = *x.Free
	}
	parts := []struct {
		sign  string
		slots int32
	}{{signUsed, x.Used}, {signKept, x.Kept}, {signLeaving, x.Leaving}, {signReserved, x.Reserved}, {signFree, free}}
	total := int32(0)
	for _, p := range parts {
		total += p.slots
	}
	per := max(1, (total+mostSigns-1)/mostSigns)
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
	colours := map[rune]colour{'█': blue, '▓': yellow, '▒': red, '░': green, '·': faint}
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
