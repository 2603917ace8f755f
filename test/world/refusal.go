// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/internal/ledger"
)

type Refused string

const (
	RefusedAttachments Refused = "attachments"
	RefusedTickets     Refused = "tickets"
	RefusedNodes       Refused = "nodes"
)

func AllRefused() []Refused { return []Refused{RefusedAttachments, RefusedTickets, RefusedNodes} }

// Refusal answers requests about its key, or about all, with 403.
type Refusal struct {
	What Refused
	Key  string // empty: all
}

func (w *World) Refuse(r Refusal) {
	if !slices.Contains(w.Refusals, r) {
		w.Refusals = append(slices.Clip(w.Refusals), r)
	}
}

func (w *World) Accept(r Refusal) { w.Refusals = exclude(w.Refusals, r) }

func (w *World) refuses(r Request) bool {
	if len(w.Refusals) == 0 {
		return false
	}
	switch r.Do {
	case CreateAttachment:
		a, _ := r.Fact.(ledger.Attachment)
		return w.Refuses(RefusedAttachments, a.Name)
	case DropAttachment:
		return w.Refuses(RefusedAttachments, r.Key)
	case DecideTicket:
		return w.Refuses(RefusedTickets, r.Key)
	case PatchNode, WriteReported:
		return w.Refuses(RefusedNodes, string(r.Node))
	}
	return false
}

func (w *World) Refuses(what Refused, key string) bool {
	return slices.ContainsFunc(w.Refusals, func(r Refusal) bool { return r.What == what && (r.Key == "" || r.Key == key) })
}

func (w *World) RefusedFor(v ledger.VolumeID, n ledger.NodeName) bool {
	if len(w.Refusals) == 0 {
		return false
	}
	refused := func(n ledger.NodeName) bool {
		return w.Refuses(RefusedNodes, string(n)) || w.Refuses(RefusedAttachments, ledger.AttachmentName(v, n))
	}
	if refused(n) {
		return true
	}
	for _, m := range w.Machines {
		_, attached := w.Attachment(ledger.AttachmentName(v, m.Node))
		node, _ := w.Node(m.Node)
		if (attached || v.NoAttach() && slices.Contains(node.Reported, v)) && refused(m.Node) {
			return true
		}
	}
	return false
}

// ParseRefusal reads "what" or "what key".
func ParseRefusal(text string) (Refusal, bool) {
	what, key, _ := strings.Cut(text, " ")
	return Refusal{Refused(what), key}, slices.Contains(AllRefused(), Refused(what))
}

func (r Refusal) String() string { return strings.TrimSpace(string(r.What) + " " + r.Key) }
