// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"bytes"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// Table prints rows as kubectl get does.
type Table struct {
	table metav1.Table
	keys  []string // a row's identity, for changes
}

// column is a column's name; one that begins with "+" is shown when wide is
// asked for.
func newTable(columns ...string) *Table {
	t := &Table{}
	for _, c := range columns {
		name, wide := strings.CutPrefix(c, "+")
		definition := metav1.TableColumnDefinition{Name: name, Type: "string"}
		if wide {
			definition.Priority = 1
		}
		t.table.ColumnDefinitions = append(t.table.ColumnDefinitions, definition)
	}
	return t
}

func (t *Table) add(key string, cells ...any) {
	t.keys = append(t.keys, key)
	t.table.Rows = append(t.table.Rows, metav1.TableRow{Cells: cells})
}

// Len is the number of rows.
func (t *Table) Len() int { return len(t.table.Rows) }

// Print prints the table.
func (t *Table) Print(w io.Writer, o *Output, s Style) error {
	return NewRows(w).Print(t, o, s)
}

// Rows prints tables below each other, in columns of the same widths. It is
// serial.
type Rows struct {
	to     io.Writer
	buffer bytes.Buffer
	writer interface {
		io.Writer
		Flush() error
	}
}

// NewRows returns rows that are printed to a writer.
func NewRows(to io.Writer) *Rows {
	r := &Rows{to: to}
	r.writer = printers.GetNewTabWriter(&r.buffer)
	return r
}

// Print prints a table below the ones before.
func (r *Rows) Print(t *Table, o *Output, s Style) error {
	printer := printers.NewTablePrinter(printers.PrintOptions{NoHeaders: o.NoHeaders, Wide: o.Wide()})
	if err := printer.PrintObj(&t.table, r.writer); err != nil {
		return err
	}
	if err := r.writer.Flush(); err != nil {
		return err
	}
	defer r.buffer.Reset()
	_, err := io.WriteString(r.to, s.paintBars(r.buffer.String()))
	return err
}

// Changed leaves only the rows that seen does not hold as they are, notes them
// there and returns their places: what kubectl get -w prints next.
func (t *Table) Changed(seen map[string]string) []int {
	var changed []int
	var rows []metav1.TableRow
	for i, row := range t.table.Rows {
		var b strings.Builder
		for c, cell := range row.Cells {
			if name := t.table.ColumnDefinitions[c].Name; name != "AGE" && name != "SINCE" {
				b.WriteString(cellText(cell) + "\x00")
			}
		}
		if seen[t.keys[i]] != b.String() {
			seen[t.keys[i]] = b.String()
			rows, changed = append(rows, row), append(changed, i)
		}
	}
	t.table.Rows = rows
	return changed
}

func cellText(cell any) string {
	if text, ok := cell.(string); ok {
		return text
	}
	return ""
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
	t := newTable("VOLUME", "CLAIM", "STATE", "NODE", "HOLDER", "NEXT", "WAITING", "REASON", "+DRIVER", "+HANDLE", "+ACCESS", "+TRANSITIONS", "SINCE")
	for _, v := range list {
		name := v.PersistentVolume
		if name == "" {
			name = v.Handle
		}
		node, holder, since := holderOf(v)
		next := ""
		if v.Next != nil {
			next = v.Next.Who.Namespace + "/" + v.Next.Who.Name + " at " + v.Next.Node
		}
		reason := ""
		if v.Reason != nil {
			reason = v.Reason.Code
		}
		t.add(v.Driver+"^"+v.Handle, name, orNone(v.Claim), v.State, orNone(node), orNone(holder), orNone(next), number(len(v.Waiting)),
			orNone(reason), v.Driver, v.Handle, v.Access, number(int(v.Transitions)), ago(now, since))
	}
	return t
}

// holderOf says where a volume is, for whom and since when; for a shared one,
// of all its nodes.
func holderOf(v facts.Volume) (node, holder string, since time.Time) {
	if v.Holder != nil {
		return v.Holder.Node, shortNames(v.Holder.For), v.Holder.Since
	}
	var nodes []string
	var users []facts.Requester
	for _, p := range v.Nodes {
		nodes = append(nodes, p.Node)
		for _, u := range p.Users {
			users = append(users, u.Requester)
		}
		since = p.Since
	}
	return strings.Join(nodes, ","), shortNames(users), since
}

func shortNames(list []facts.Requester) string {
	switch len(list) {
	case 0:
		return ""
	case 1:
		return list[0].Namespace + "/" + list[0].Name
	}
	return list[0].Namespace + "/" + list[0].Name + " +" + number(len(list)-1)
}

// Tickets is the table of tickets.
func Tickets(list []facts.Ticket, now time.Time) *Table {
	t := newTable("NAMESPACE", "NAME", "TYPE", "FOR", "NODE", "STATE", "REASON", "+PRIORITY", "+VOLUMES", "AGE")
	for _, x := range list {
		reason := ""
		if len(x.Reasons) > 0 {
			reason = x.Reasons[0].Code
		}
		name := x.Name
		if x.Derived {
			name = "(the pod)"
		}
		t.add(x.Namespace+"/"+x.Type+"/"+x.Name, x.Namespace, name, x.Type, orNone(x.For), x.Node, x.State, orNone(reason),
			number(x.Priority), strings.Join(x.Volumes, ","), ago(now, x.Created))
	}
	return t
}
