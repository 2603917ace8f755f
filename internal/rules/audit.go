// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Violation is a broken invariant (docs/internals/invariants.md). It causes a metric and an event, and
// stops work on the volume.
type Violation struct {
	Invariant string // I1 … I9
	Volume    ledger.VolumeID
	Node      ledger.NodeName
	Ticket    ledger.TicketID // to decide on, if any
	Message   string
}

func (v Violation) String() string {
	if v.Node == "" {
		return fmt.Sprintf("%s: %s: %s", v.Invariant, v.Volume, v.Message)
	}
	return fmt.Sprintf("%s: %s at %s: %s", v.Invariant, v.Volume, v.Node, v.Message)
}

// Audit checks the invariants of every instant, also while calls are in flight. It reads all facts: call it
// rarely.
func (a Arbiter) Audit(s ledger.Snapshot, now time.Time) []Violation {
	var found []Violation
	for v := range s.Volumes() {
		found = append(found, a.auditVolume(s, v, now)...)
	}
	found = append(found, a.AuditCounts(s)...)
	slices.SortFunc(found, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Invariant, b.Invariant), cmp.Compare(a.Volume.Driver, b.Volume.Driver),
			cmp.Compare(a.Volume.Handle, b.Volume.Handle), cmp.Compare(a.Node, b.Node))
	})
	return found
}

// AuditVolume is Audit of one volume.
func (a Arbiter) AuditVolume(s ledger.Snapshot, id ledger.VolumeID, now time.Time) []Violation {
	if v := s.Volume(id); v != nil {
		return a.auditVolume(s, v, now)
	}
	return nil
}

func (a Arbiter) auditVolume(s ledger.Snapshot, v *ledger.Volume, now time.Time) []Violation {
	var found []Violation
	p := a.planner(s, v, now)
	var attached []string
	for i := range v.OnNodes {
		place := &v.OnNodes[i]
		if place.HasAttachments() && !fenced(s, v, place.Node, now) && !p.migratesTo(place) {
			attached = append(attached, attachedWhere(place))
		}
		// Another controller's report may be seen before its attachment.
		if !p.Cooperative && reportedEarly(v, place) {
			found = append(found, Violation{Invariant: "I5", Volume: v.ID, Node: place.Node, Message: "reported as attached, and its attachment says otherwise"})
		}
	}
	most := 1
	if policyOf(s, v).LiveMigration {
		most = 2 // a finished migration leaves two until one is gone
	}
	if p.exclusive && !p.shared && v.Access != ledger.AccessUnknown && len(attached) > most {
		found = append(found, Violation{Invariant: "I1", Volume: v.ID, Message: fmt.Sprintf("an exclusive volume has attachments at %d nodes: %s", len(attached), strings.Join(attached, ", "))})
	}
	return found
}

// attachedWhere names the node of a place, and says whether its attachment is being deleted.
func attachedWhere(place *ledger.VolumeOnNode) string {
	va := place.Canonical()
	switch {
	case va == nil || !va.Deleting:
		return string(place.Node)
	case va.DetachError.IsZero():
		return string(place.Node) + " (being detached)"
	}
	return string(place.Node) + " (its detach fails)"
}

// reportedEarly says whether volumesAttached names a volume whose attachment was never attached.
func reportedEarly(v *ledger.Volume, p *ledger.VolumeOnNode) bool {
	if !p.Reported || p.Lapsed || v.ID.NoAttach() {
		return false
	}
	va := p.Own()
	return va != nil && !va.Attached && !va.Deleting
}

type slotsOf struct {
	node   ledger.NodeName
	driver string
}

// AuditCounts compares the nodes' running counts with a recount of all VolumeOnNodes.
func (Arbiter) AuditCounts(s ledger.Snapshot) []Violation {
	used, occupied := map[slotsOf]int32{}, map[slotsOf]int32{}
	for v := range s.Volumes() {
		for i := range v.OnNodes {
			if n := v.OnNodes[i].Node; n != ledger.Detached {
				used[slotsOf{n, v.ID.Driver}]++
				if v.OnNodes[i].OccupiesSlotWithoutUse() {
					occupied[slotsOf{n, v.ID.Driver}]++
				}
			}
		}
	}
	var found []Violation
	for n := range s.Nodes() {
		for _, d := range n.Drivers {
			key := slotsOf{n.Name, d.Name}
			if d.Used != used[key] {
				found = append(found, Violation{Invariant: "I2", Volume: ledger.VolumeID{Driver: d.Name}, Node: n.Name,
					Message: fmt.Sprintf("the ledger counts %d slots, there are %d", d.Used, used[key])})
			}
			if d.Occupied != occupied[key] {
				found = append(found, Violation{Invariant: "I2", Volume: ledger.VolumeID{Driver: d.Name}, Node: n.Name,
					Message: fmt.Sprintf("the ledger counts %d slots of attachments, there are %d", d.Occupied, occupied[key])})
			}
			delete(used, key)
		}
	}
	for key, count := range used {
		found = append(found, Violation{Invariant: "I2", Volume: ledger.VolumeID{Driver: key.driver}, Node: key.node,
			Message: fmt.Sprintf("the ledger counts no slots, there are %d", count)})
	}
	return found
}

// unreported lists the places with a wanted, attached volume outside volumesAttached, and no step left.
func (a Arbiter) unreported(s ledger.Snapshot, v *ledger.Volume, now time.Time) []Violation {
	p := a.planner(s, v, now)
	p.hold = hold(v)
	var found []Violation
	for i := range v.OnNodes {
		place := &v.OnNodes[i]
		node, va := s.Node(place.Node), place.Own()
		attached := va != nil && va.Attached && !va.Deleting && !replaced(node, va)
		if attached && !place.Reported && p.adopted() && p.mayReport(node) && p.wanted(place) && !bars(s, v, place) {
			found = append(found, Violation{Invariant: "I4", Volume: v.ID, Node: place.Node, Message: "attached where it is wanted, and not reported"})
		}
	}
	return found
}

// AuditAtRest checks the invariants without calls in flight: I6, I7 and I4.
func (a Arbiter) AuditAtRest(s ledger.Snapshot, now time.Time) []Violation {
	var found []Violation
	for v := range s.Volumes() {
		plan := a.Plan(s, v.ID, now)
		for _, step := range plan.Steps {
			found = append(found, Violation{Invariant: "I6", Volume: v.ID, Node: step.Node, Message: "still to do: " + step.Kind.String()})
		}
		if len(plan.Steps) == 0 {
			found = append(found, a.unreported(s, v, now)...)
		}
	}
	queues := map[ledger.NodeName]*Queue{}
	for t := range s.Tickets() {
		if v := a.Keeps(s, t, now); t.Phase == ledger.TicketGranted && !v.Allowed() && !OnNotice(t, now) {
			found = append(found, Violation{Invariant: "I1", Volume: v.First().Volume, Node: t.Node, Ticket: t.ID, Message: "still to do: take the grant from ticket " + t.ID.String()})
		}
		if t.Phase != ledger.TicketPending {
			continue
		}
		if queues[t.Node] == nil {
			queues[t.Node] = a.Queue(s, t.Node, now)
		}
		if v := queues[t.Node].Grant(t); v.Allowed() || len(v.Reasons) == 0 {
			found = append(found, Violation{Invariant: "I7", Node: t.Node, Ticket: t.ID, Message: "still to do: decide on ticket " + t.ID.String() + ", " + v.Outcome.String()})
		}
	}
	slices.SortFunc(found, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Invariant, b.Invariant), cmp.Compare(a.Volume.Handle, b.Volume.Handle), cmp.Compare(a.Message, b.Message))
	})
	return found
}
