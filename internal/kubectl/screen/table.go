// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/view"
)

// Tables with ordinary names fit plainWidth. Names for copying (claim, node, driver, ticket) stay whole;
// pods' names are cut in the middle. -o wide shows everything.
const (
	nsNameWidth = 23 // namespace/name of a pod or ticket
	claimWidth  = 19 // namespace/name of a claim
	nodeWidth   = 12
	driverWidth = 18
	podWidth    = 12 // shortened
)

// Table prints rows as kubectl get does.
type Table struct {
	columns []column
	rows    [][]string
}

// column is shown always, or only with or without -o wide.
type column struct {
	name         string
	wide, narrow bool
}

// newTable makes an empty table. A column with "+" is shown only with -o wide, with "-" only without it.
func newTable(columns ...string) *Table {
	t := &Table{}
	for _, c := range columns {
		t.columns = append(t.columns, column{name: strings.TrimLeft(c, "+-"), wide: c[0] == '+', narrow: c[0] == '-'})
	}
	return t
}

func (t *Table) add(cells ...string) { t.rows = append(t.rows, cells) }

// Len is the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// lines are the visible cells, below the headers if wanted.
func (t *Table) lines(o *Output) [][]string {
	var names []string
	for _, c := range t.columns {
		names = append(names, c.name)
	}
	lines := t.rows
	if !o.NoHeaders {
		lines = append([][]string{names}, t.rows...)
	}
	var shown [][]string
	for _, cells := range lines {
		var line []string
		for i, c := range t.columns {
			if c.wide && !o.Wide() || c.narrow && o.Wide() {
				continue
			}
			line = append(line, shownLine(cells[i]))
		}
		shown = append(shown, line)
	}
	return shown
}

// gap is less than kubectl's 3, to fit 80 columns.
const gap = 2

// Print prints the table.
func (t *Table) Print(w io.Writer, o *Output, s Style) error {
	var b strings.Builder
	columns := tabwriter.NewWriter(&b, 0, 0, gap, ' ', 0)
	for _, cells := range t.lines(o) {
		fmt.Fprintln(columns, strings.Join(cells, "\t"))
	}
	if err := columns.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, s.paintBars(b.String()))
	return err
}

const none = "<none>"

func orNone(text string) string {
	if text == "" {
		return none
	}
	return text
}

// Volumes is the table of volumes.
func Volumes(list []facts.Volume, now time.Time) *Table {
	t := newTable("+VOLUME", "CLAIM", "-STATUS", "+STATE", "-NODE", "+NODE", "-HOLDER", "+HOLDER", "-WAITING", "+NEXT", "+WAITING",
		"+REASON", "+DRIVER", "+HANDLE", "+ACCESS", "+TRANSITIONS", "+SINCE")
	for _, v := range list {
		name := v.PersistentVolume
		if name == "" {
			name = v.Handle
		}
		claim := v.Claim
		if claim == "" {
			claim = "(" + name + ")"
		}
		nodes, holders, since := holdersOf(v)
		if v.Next != nil {
			holders = slices.DeleteFunc(slices.Clone(holders), func(r facts.Requester) bool { return r == v.Next.Who })
		}
		next, waiting := "", v.Waiting
		if v.Next != nil {
			next, waiting = v.Next.Who.Namespace+"/"+v.Next.Who.Name+" "+facts.AtNode(v.Next.Node), append([]facts.Waiter{*v.Next}, v.Waiting...)
		}
		reason := ""
		if v.Reason != nil {
			reason = v.Reason.Code
		}
		t.add(orNone(name), claim, cmp.Or(reason, v.State), v.State, orNone(nodesOf(nodes)), orNone(strings.Join(nodes, ",")),
			orNone(short(holders)), orNone(shortNames(holders)), orNone(short(who(waiting))), orNone(next), number(len(v.Waiting)),
			orNone(reason), orNone(v.Driver), orNone(v.Handle), v.Access, number(int(v.Transitions)), ago(now, since))
	}
	return t
}

func nodesOf(nodes []string) string {
	if len(nodes) > 1 {
		return number(len(nodes)) + " nodes"
	}
	return strings.Join(nodes, "")
}

func who(list []facts.Waiter) []facts.Requester {
	var all []facts.Requester
	for _, w := range list {
		all = append(all, w.Who)
	}
	return all
}

// holdersOf covers all nodes of a shared volume.
func holdersOf(v facts.Volume) (nodes []string, holders []facts.Requester, since time.Time) {
	if v.Holder != nil {
		return []string{v.Holder.Node}, v.Holder.For, v.Holder.Since
	}
	if v.Asked() {
		return nil, nil, time.Time{}
	}
	for _, p := range v.Places() {
		nodes = append(nodes, p.Node)
		for _, u := range p.Users {
			holders = append(holders, u.Requester)
		}
		since = p.Since
	}
	return nodes, holders, since
}

func shortNames(list []facts.Requester) string {
	if len(list) == 0 {
		return ""
	}
	return list[0].Namespace + "/" + list[0].Name + others(list)
}

// short is shortNames without the claim's namespace, within podWidth columns.
func short(list []facts.Requester) string {
	if len(list) == 0 {
		return ""
	}
	return shortName(list[0].Name, podWidth-len(others(list))) + others(list)
}

func others(list []facts.Requester) string {
	if len(list) == 1 {
		return ""
	}
	return " +" + number(len(list)-1)
}

// shortName cuts the middle: a workload's pods differ only at the end.
func shortName(name string, width int) string {
	if len(name) <= width {
		return name
	}
	head := (width - 1) / 2
	return name[:head] + "…" + name[len(name)-(width-1-head):]
}

// Tickets is the table of tickets.
func Tickets(list []facts.Ticket, now time.Time) *Table {
	t := newTable("-TICKET", "+NAMESPACE", "+NAME", "TYPE", "NODE", "-STATUS", "+STATE", "+REASON", "+PRIORITY", "+VOLUMES", "AGE")
	for _, x := range list {
		reason := ""
		if len(x.Reasons) > 0 {
			reason = x.Reasons[0].Code
		} else if x.NodeNotReady {
			reason = "NodeNotReady"
		}
		status := cmp.Or(reason, x.State)
		if x.Yielding != "" && !x.NodeNotReady { // like status.state
			status, reason = v1alpha1.TicketYielding, cmp.Or(reason, v1alpha1.TicketYielding)
		}
		node := orNone(x.Node)
		if x.Detached {
			node = "(detached)"
		}
		t.add(x.Namespace+"/"+x.Name, x.Namespace, x.Name, x.Type, node,
			status, x.State, orNone(reason), number(x.Priority), strings.Join(x.Volumes, ","), ago(now, x.Created))
	}
	return t
}

func waits(list []facts.Wait, now time.Time) *Table {
	t := newTable("WAITING", "NODE", "STATUS", "WAITED")
	for _, x := range list {
		t.add(strings.TrimPrefix(x.Who.Ref(), "pod/"), orNone(x.Node), cmp.Or(x.Code, x.State), ago(now, x.Since))
	}
	return t
}

// The signs of a bar of slots in order show the kinds without colour.
const (
	signUsed     = "█"
	signKept     = "▓"
	signLeaving  = "▒"
	signUnknown  = "▚"
	signReserved = "░"
	signFree     = "·"
)

// The row's room limits a bar; a sign then stands for several slots.
const (
	leastSigns = 15
	mostSigns  = 40
)

func (s Style) signs() int { return min(max(s.Columns()-plainWidth+leastSigns, leastSigns), mostSigns) }

// BarLegend explains the bar.
const BarLegend = signUsed + " used  " + signKept + " kept by detachDelay  " + signLeaving + " leaving  " + signUnknown + " unknown  " + signReserved + " reserved  " + signFree + " free"

// Slots is the table of nodes and drivers' slots, with a bar for terminals.
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
		t.add(append(cells, orNone(first), orNone(strings.Join(notes, ", ")))...)
	}
	return t
}

func taken(x facts.Slots) string {
	n := number(int(x.Taken()))
	if x.Limit == nil {
		return n + "/∞"
	}
	return n + "/" + number(int(*x.Limit))
}

func notesOf(x facts.Slots) []string {
	var notes []string
	if x.NotVisible {
		notes = append(notes, "node can't be seen")
	}
	switch {
	case x.Missing:
		return append(append(notes, "no such Node"), notesOfWord(x)...) // nor a CSINode
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

func notesOfWord(x facts.Slots) []string {
	var notes []string
	if x.Leftovers > 0 {
		notes = append(notes, number(int(x.Leftovers))+" left over")
	}
	if x.Word != "" {
		notes = append(notes, "moorage-node: "+x.Word)
	}
	return notes
}

// bar scales down, but keeps a sign for each present kind.
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

// Top is the content of kubectl moorage top, most urgent first.
type Top struct {
	Slots   []facts.Slots
	Waits   []facts.Wait
	Volumes []facts.Volume // moving, stuck, or waited for
	Down    []facts.Reason // the components that are down
	Totals  view.Totals
	Now     time.Time
}

// TopOf limits waiters and volumes to a namespace; empty: all.
func TopOf(w *facts.World, namespace string) Top {
	v := view.Of(w).In(namespace)
	t := Top{Slots: w.ListSlots(), Waits: v.Waits, Down: w.ControllersDown(), Totals: v.Count(), Now: w.Now}
	for _, volume := range w.ListVolumes(namespace) {
		if view.Moves(volume.State, volume.Reason != nil) || volume.Next != nil || len(volume.Waiting) > 0 {
			t.Volumes = append(t.Volumes, volume)
		}
	}
	slices.SortStableFunc(t.Waits, func(a, b facts.Wait) int { return a.Since.Compare(b.Since) })
	slices.SortStableFunc(t.Slots, func(a, b facts.Slots) int { return cmp.Compare(room(&a), room(&b)) })
	return t
}

// room orders nodes: not ready, full, then by free slots.
func room(x *facts.Slots) int32 {
	switch {
	case !x.Ready:
		return -1
	case x.Exhausted:
		return 0
	case x.Free == nil:
		return math.MaxInt32
	}
	return *x.Free
}

// Print prints the screen, the waiters first.
func (t Top) Print(w io.Writer, s Style) error {
	_, err := io.WriteString(w, strings.Join(append(t.Head(s), ""), "\n")+"\n")
	if err == nil {
		err = t.Tables(w, s)
	}
	return err
}

// Tables prints the tables below the head.
func (t Top) Tables(w io.Writer, s Style) error {
	for _, part := range []*Table{waits(t.Waits, t.Now), Volumes(t.Volumes, t.Now), Slots(t.Slots, s)} {
		if part.Len() == 0 {
			continue
		}
		if err := part.Print(w, NewOutput(true), s); err != nil {
			return err
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
	}
	return nil
}

// Head is the part above the tables.
func (t Top) Head(s Style) []string {
	x, at := t.Totals, t.Now.UTC().Format("15:04:05")
	nodes := facts.Count(x.Nodes, "node")
	if x.NotReady > 0 {
		nodes += fmt.Sprintf(", %d not ready", x.NotReady)
	}
	if x.Full > 0 {
		nodes += fmt.Sprintf(", %d full", x.Full)
	}
	slots := fmt.Sprintf("%d of %d slots taken", x.Taken, x.Limit)
	if x.Limit == 0 { // before drivers register
		slots = fmt.Sprintf("%d slots taken, no limit known", x.Taken)
	}
	if x.Stuck > 0 {
		slots += fmt.Sprintf(", %d more at nodes not ready", x.Stuck)
	}
	lines := []string{fmt.Sprintf("%s  %s; %s", s.paint(bold, at), nodes, slots), fmt.Sprintf("          %d waiting; %d on their way", x.Waiting, x.Moving)}
	var down bytes.Buffer
	if Down(&down, s, t.Down, t.Now) == nil && down.Len() > 0 {
		lines = append(lines, strings.Split(strings.TrimSuffix(down.String(), "\n"), "\n")...)
	}
	return lines
}
