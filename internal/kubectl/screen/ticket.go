// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// Ticket prints why a ticket waits, or that it has its volumes, and when it ends.
func Ticket(w io.Writer, s Style, x facts.TicketExplanation, now time.Time, wide bool) error {
	p := &page{w: w, s: s, now: now, cause: x.Cause}
	p.headline("ticket "+x.Namespace+"/"+x.Name, x.Answer, x.Cause)
	if x.Operation != "" {
		p.line(2, "for", fmt.Sprintf("the %s of %s: Moorage has made it, as an AttachPolicy says (attachFor, detachFor)", strings.ToLower(x.Operation), x.OperationOf))
	}
	p.line(2, "ends", x.Ends())
	if !wide {
		p.more("its type, its volumes and every reason")
		return p.err
	}
	yields := "keeps what it has been granted"
	if x.Yields {
		yields = "gives its volumes up to pods, and to tickets of their priority or higher"
	}
	where := "at " + x.Node
	switch {
	case x.Detached:
		where = "at no node (detached)"
	case x.Wherever && x.Node == "":
		where = "at no node yet: Moorage chooses it (wherever)"
	case x.Wherever:
		where += ", which Moorage has chosen (wherever)"
	}
	p.line(2, "ticket", fmt.Sprintf("%s, priority %d, %s, %s, age %s", x.Type, x.Priority, yields, where, ago(p.now, x.Created)))
	p.line(2, "volumes", strings.Join(x.Volumes, ", "))
	p.line(2, "attached", parameters(x.Parameters))
	if x.Interruptions > 0 {
		p.line(2, "lost", fmt.Sprintf("its volumes %s in a row: each time it is granted again after a longer pause, 5 minutes at most", facts.Count(int(x.Interruptions), "time")))
	}
	if x.Cause != nil {
		p.line(2, "changes", x.Cause.Changes)
	}
	if len(x.Reasons) > 1 {
		p.reasons(2, x.Reasons[1:])
	}
	return p.err
}

// parameters says with which parameters volumes are to be attached; empty: with none.
func parameters(of map[string]string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		list = append(list, key+"="+of[key])
	}
	if len(list) == 0 {
		return ""
	}
	return "with parameters " + strings.Join(list, ", ")
}
