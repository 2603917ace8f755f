// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"cmp"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// What is shown by default fits plainWidth columns where names are of ordinary length, as
// below: each table has the columns that most readers need, and merges what fits one.
// Names that somebody may have to copy, of a claim, node, driver or ticket, stay whole: a
// longer one makes its line longer. Those of pods that hold a volume or wait for it are
// shortened in their middle. -o wide has every column and every name, whatever the width.
const (
	nsNameWidth = 23 // namespace/name of a pod or ticket
	claimWidth  = 19 // namespace/name of a claim
	nodeWidth   = 12
	driverWidth = 18
	podWidth    = 12 // to which a pod's name is shortened
)

// Table prints rows as kubectl get does.
type Table struct {
	columns []column
	rows    [][]string
	keys    []string // a row's identity, for changes
}

// column has a name, and is shown always, with -o wide only, or without it only.
type column struct {
	name         string
	wide, narrow bool
}

// newTable makes a table without rows. A column whose name begins with "+" is shown with -o
// wide only, one with "-" only without it.
func newTable(columns ...string) *Table {
	t := &Table{}
	for _, c := range columns {
		t.columns = append(t.columns, column{name: strings.TrimLeft(c, "+-"), wide: c[0] == '+', narrow: c[0] == '-'})
	}
	return t
}

func (t *Table) add(key string, cells ...string) {
	t.keys = append(t.keys, key)
	t.rows = append(t.rows, cells)
}

// Len is the number of rows.
func (t *Table) Len() int { return len(t.rows) }

// lines are the cells that are shown, below the columns' names unless those are left out.
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

// Print prints the table.
func (t *Table) Print(w io.Writer, o *Output, s Style) error {
	return NewRows(w).Print(t, o, s)
}

// gap is the space between columns: kubectl's own is 3, for which 80 columns are too few.
const gap = 2

// Rows prints tables below each other, in columns that get wider where they have to, and
// never narrower. It is serial.
type Rows struct {
	to     io.Writer
	widths []int
}

// NewRows returns rows that are printed to a writer.
func NewRows(to io.Writer) *Rows { return &Rows{to: to} }

// Print prints a table below the ones before.
func (r *Rows) Print(t *Table, o *Output, s Style) error {
	lines := t.lines(o)
	for _, cells := range lines {
		for len(r.widths) < len(cells) {
			r.widths = append(r.widths, 0)
		}
		for i, cell := range cells {
			r.widths[i] = max(r.widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, cells := range lines {
		line := ""
		for i, cell := range cells {
			line += cell + strings.Repeat(" ", r.widths[i]-utf8.RuneCountInString(cell)+gap)
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(r.to, s.paintBars(b.String()))
	return err
}

// Changed leaves only the rows that seen does not hold as they are, notes them
// there and returns their places: what kubectl get -w prints next.
func (t *Table) Changed(seen map[string]string) []int {
	var changed []int
	var rows [][]string
	for i, row := range t.rows {
		var b strings.Builder
		for c, cell := range row {
			if name := t.columns[c].name; name != "AGE" && name != "SINCE" {
				b.WriteString(cell + "\x00")
			}
		}
		if seen[t.keys[i]] != b.String() {
			seen[t.keys[i]] = b.String()
			rows, changed = append(rows, row), append(changed, i)
		}
	}
	t.rows = rows
	return changed
}

// none stands for an empty cell, as in kubectl get.
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
		key := v.Driver + "^" + v.Handle
		if v.Handle == "" {
			key = v.Claim // it has no volume yet
		}
		t.add(key, orNone(name), claim, cmp.Or(reason, v.State), v.State, orNone(nodesOf(nodes)), orNone(strings.Join(nodes, ",")),
			orNone(short(holders)), orNone(shortNames(holders)), orNone(short(who(waiting))), orNone(next), number(len(v.Waiting)),
			orNone(reason), orNone(v.Driver), orNone(v.Handle), v.Access, number(int(v.Transitions)), ago(now, since))
	}
	return t
}

// nodesOf names the node of a volume that is at one, and counts them otherwise.
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

// holdersOf says where a volume is, for whom and since when; for a shared one,
// of all its nodes.
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

// short is shortNames without the namespace, which is that of the claim, in no more than
// podWidth columns.
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

// shortName takes out the middle of a name that is longer than a width: pods of one workload
// begin alike and end differently.
func shortName(name string, width int) string {
	if len(name) <= width {
		return name
	}
	head := (width - 1) / 2
	return name[:head] + "…" + name[len(name)-(width-1-head):]
}

// Tickets is the table of tickets. One of a pod goes by the pod's name: its own is the
// pod's UID, which -o wide has.
func Tickets(list []facts.Ticket, now time.Time) *Table {
	t := newTable("-TICKET", "-TYPE", "+NAMESPACE", "+NAME", "+TYPE", "+FOR", "NODE", "-STATUS", "+STATE", "+REASON", "+PRIORITY", "+VOLUMES", "AGE")
	for _, x := range list {
		reason := ""
		if len(x.Reasons) > 0 {
			reason = x.Reasons[0].Code
		} else if x.NodeNotReady {
			reason = "NodeNotReady"
		}
		status := cmp.Or(reason, x.State)
		if x.Yielding != "" && !x.NodeNotReady { // as its status.state
			status, reason = v1alpha1.TicketYielding, cmp.Or(reason, v1alpha1.TicketYielding)
		}
		name, kind, node := x.Name, x.Type, orNone(x.Node)
		if x.Detached {
			node = "(detached)"
		}
		if x.Derived {
			name, kind = "(the pod)", x.Type+" (bound)"
		}
		t.add(x.Namespace+"/"+x.Type+"/"+x.Name, x.Namespace+"/"+cmp.Or(x.For, x.Name), kind, x.Namespace, name, x.Type, orNone(x.For), node,
			status, x.State, orNone(reason), number(x.Priority), strings.Join(x.Volumes, ","), ago(now, x.Created))
	}
	return t
}

// waits is the table of pods that wait.
func waits(list []facts.PodWait, now time.Time) *Table {
	t := newTable("POD", "NODE", "STATUS", "FOR")
	for _, x := range list {
		t.add(x.Who.String(), x.Who.Namespace+"/"+x.Who.Name, orNone(x.Node), cmp.Or(x.Code, x.State), ago(now, x.Since))
	}
	return t
}
