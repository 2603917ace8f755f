// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// Top is what kubectl moorage top shows.
type Top struct {
	Slots   []facts.Slots
	Waits   []facts.PodWait
	Volumes []facts.Volume // those that are on their way, stuck, or waited for
	Down    []facts.Cause  // components without which nothing is granted, attached or detached
	Now     time.Time
}

// TopOf takes what top shows out of a cluster: pods and volumes of a namespace, or of all where
// that is empty.
func TopOf(w *facts.World, namespace string, now time.Time) Top {
	t := Top{Slots: w.ListSlots(), Waits: w.ListWaits(), Down: w.ControllersDown(), Now: now}
	if namespace != "" {
		t.Waits = slices.DeleteFunc(t.Waits, func(wait facts.PodWait) bool { return wait.Who.Namespace != namespace })
	}
	for _, v := range w.ListVolumes(namespace) {
		if atRest(&v) && v.Next == nil && len(v.Waiting) == 0 {
			continue
		}
		t.Volumes = append(t.Volumes, v)
	}
	return t
}

// Print prints the screen. On a terminal it takes no more lines than that has:
// each part says how many rows it leaves out.
func (t Top) Print(w io.Writer, s Style) error {
	var b bytes.Buffer
	b.WriteString(strings.Join(t.head(s), "\n") + "\n\n")
	room := t.room(s)
	for _, part := range []*Table{Slots(t.Slots, s), waits(t.Waits, t.Now), Volumes(t.Volumes, t.Now)} {
		if part.Len() == 0 {
			continue
		}
		left := part.cut(room)
		if err := part.Print(&b, NewOutput(true), s); err != nil {
			return err
		}
		if left > 0 {
			fmt.Fprintf(&b, "… and %d more\n", left)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, s.clip(b.String()))
	return err
}

// slotsTaken counts the slots of nodes that are ready, which others can have, and those that
// are taken at the other nodes.
func (t Top) slotsTaken() (text string, dead int32) {
	var used, total int32
	known := false
	for _, x := range t.Slots {
		switch {
		case !x.Ready:
			dead += x.Taken()
		case x.Limit != nil:
			known = true
			used += x.Taken()
			total += *x.Limit
		}
	}
	if !known { // as before drivers have registered
		return fmt.Sprintf("%d, no limit known", used), dead
	}
	return fmt.Sprintf("%d of %d", used, total), dead
}

// onTheirWay counts the volumes that have not arrived: those that are at rest, and that
// somebody else waits for, are not on their way.
func (t Top) onTheirWay() int {
	n := 0
	for i := range t.Volumes {
		if !atRest(&t.Volumes[i]) {
			n++
		}
	}
	return n
}

// atRest says whether a volume is where it is to be, or nowhere.
func atRest(v *facts.Volume) bool {
	switch v.State {
	case "Attached", "InUse", "Free", "Kept", "NotProvisioned":
		return v.Reason == nil
	}
	return false
}

// head is what stands above the tables.
func (t Top) head(s Style) []string {
	slots, dead := t.slotsTaken()
	lines := []string{fmt.Sprintf("%s  slots taken: %s   pods that wait: %d   volumes on their way: %d",
		s.paint(bold, t.Now.UTC().Format("15:04:05")), slots, len(t.Waits), t.onTheirWay())}
	if dead > 0 {
		lines = append(lines, fmt.Sprintf("          slots taken at nodes that are not ready: %d", dead))
	}
	var down bytes.Buffer
	if Down(&down, s, t.Down, t.Now) == nil && down.Len() > 0 {
		lines = append(lines, strings.Split(strings.TrimSuffix(down.String(), "\n"), "\n")...)
	}
	return lines
}

// room is how many rows each of the three tables may take.
func (t Top) room(s Style) int {
	overhead := len(t.head(s)) + 1 + 3*3 // of each table its header, what is left out, and a blank line
	if s.Height == 0 {
		return 1 << 20
	}
	return max(1, (s.Height-overhead)/3)
}

// cut leaves so many rows, and returns how many it took away.
func (t *Table) cut(rows int) int {
	left := max(0, len(t.rows)-rows)
	t.rows = t.rows[:len(t.rows)-left]
	return left
}

// clip cuts lines to the terminal's width, so that none takes two. Escape
// sequences take no room.
func (s Style) clip(text string) string {
	if s.Width == 0 {
		return text
	}
	var b strings.Builder
	column, escape := 0, false
	for _, r := range shown(text) {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		case r == '\n':
			column = 0
		default:
			if column++; column > s.Width {
				continue
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}
