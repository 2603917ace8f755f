// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// keeping are the types of tickets that keep their grant until they end: their work would have to restart.
var keeping = []ledger.TicketType{ledger.TypeRestore, ledger.TypeExpansion, ledger.TypeClone, ledger.TypeRebuild}

// yieldNotice is how long a ticket is asked to let go of its volumes.
const yieldNotice = 30 * time.Second

// interrupts: a ticket that was told that it has its volumes loses its grant to an earlier claimant only if
// its type yields, after it was asked to let go, and has, or has had its time.
func (j *Judge) interrupts(w *World, t ledger.Ticket, r Request) {
	if t.Phase != ledger.TicketGranted || r.Phase == ledger.TicketGranted {
		return
	}
	if r.Reason != string(rules.Outranked) {
		j.losesUnasked(w, t, r.Reason)
		return
	}
	switch {
	case t.SatisfiedSince == 0: // no user may have them
		return
	case slices.Contains(keeping, t.Type):
		j.fault("ticket %s of type %s loses its volumes to somebody who ranks before", t.ID.Name, t.Type)
	case t.LetsGo:
		return
	}
	if t.YieldingSince == 0 || w.Now.Sub(time.Unix(t.YieldingSince, 0)) < yieldNotice {
		j.fault("ticket %s loses its volumes without having had its time to let go of them (satisfied for %s, asked for %s)", t.ID.Name, since(w, t.SatisfiedSince), since(w, t.YieldingSince))
	}
}

// losesUnasked: a ticket that was told that it has its volumes loses its grant without a claimant only if
// its claim leads elsewhere by now, or nowhere, or its node is missing.
func (j *Judge) losesUnasked(w *World, t ledger.Ticket, reason string) {
	n, exists := w.Node(t.Node)
	ready := exists && n.Ready == ledger.ReadyTrue && w.Now.Sub(time.Unix(n.ReadySince, 0)) >= told // otherwise it may have been decided before
	lives := t.Node == ledger.Detached || ready && !n.OutOfService && (!n.Draining || t.OnDrain == ledger.StayOnDrain)
	if t.SatisfiedSince != 0 && lives && slices.Equal(w.TicketVolumes(t), j.told[t.UID]) {
		j.fault("ticket %s loses its volumes at %s (%s), and they are there", t.ID.Name, t.Node, reason)
	}
}

// ticketChanged notes the volumes that a ticket was told that it has. It has them until it is told
// otherwise, regardless of its claims.
func (j *Judge) ticketChanged(w *World, was, is ledger.Ticket) {
	switch {
	case is.SatisfiedSince == 0:
		j.ticketLoses(w, was)
	case was.SatisfiedSince == 0:
		j.tellsAttached(w, is)
		if j.told = maps.Clone(j.told); j.told == nil {
			j.told = map[string][]ledger.VolumeID{}
		}
		j.told[is.UID] = w.TicketVolumes(is)
	}
}

// ticketLoses notes that a ticket has lost its volumes. At a node that is not Ready its user can't know
// that, and may use them there until the node is Ready again, or they have left it.
func (j *Judge) ticketLoses(w *World, t ledger.Ticket) {
	_, silent := j.notReady[t.Node]
	for _, v := range j.told[t.UID] {
		at := At{v, t.Node}
		if !j.used(w, at) {
			j.left = with(j.left, at, w.Now)
		}
		if silent {
			j.unheard = with(j.unheard, at, true)
		}
	}
	j.told = without(j.told, t.UID)
}

// Unheard says whether a ticket has lost a volume while its node was not Ready, and the node has not been since.
func (j *Judge) Unheard(at At) bool { return j.unheard[at] }

// tellsAttached: a ticket that is told that it has its volumes at its node has them attached there. Volumes
// of a disk service's lie count as there; and if the node is not Ready, or was not since they were
// attached, the ticket is told later that they were taken by force. The writer may not have seen yet that a
// Node was deleted, which alone said that a volume without VolumeAttachments is there.
func (j *Judge) tellsAttached(w *World, t ledger.Ticket) {
	n, exists := w.Node(t.Node)
	if t.Node == ledger.Detached || !exists || n.Ready != ledger.ReadyTrue {
		return
	}
	for _, v := range w.TicketVolumes(t) {
		at := At{v, t.Node}
		_, taken := j.ended[at]
		is := v.NoAttach() && (j.unsure[at] || !lacks(n.Reported, v)) || slices.ContainsFunc(w.machinesOf(t.Node), func(m *Machine) bool { return slices.Contains(w.Disks.At[v], m.ID) })
		if !is && !taken && !w.Disks.Lied[v] && !j.foreign(w, at) && j.ground(w, at) == noGround {
			j.fault("ticket %s is told that it has its volumes at %s, where %s is not attached", t.ID.Name, t.Node, v)
		}
	}
}

// keepsDetached: while a ticket for detached volumes says that they are at no node, no machine has one
// attached or mounted, or gets one. Volumes of a disk service's lie, or that a rule of force permits at two
// places, count as elsewhere. With kube-controller-manager, which does not ask, the ticket may be told
// later.
func (j *Judge) keepsDetached(w *World, v ledger.VolumeID, machine, how string) {
	if j.Cooperative || w.Disks.Lied[v] {
		return
	}
	for _, key := range w.Keys(Tickets) {
		t, _ := typed[ledger.Ticket](&w.Objects, Tickets, key)
		if t.Node != ledger.Detached || t.Phase != ledger.TicketGranted || t.SatisfiedSince == 0 || !slices.Contains(j.told[t.UID], v) {
			continue
		}
		if m := w.Machines[machine]; !m.Replaced && !j.mayBeBeside(w, m, v) {
			j.fault("%s is %s %s while ticket %s has been told that it is attached nowhere", v, how, m.Node, t.ID.Name)
		}
	}
}

// bindsBeside: no Moorage scheduler binds a pod to a node where a ticket with parameters has a volume of
// it, and was told so, if the scheduler has seen that. known is the last version of the tickets that it has
// seen.
func (j *Judge) bindsBeside(w *World, p ledger.Pod, n ledger.NodeName, known int64) {
	for _, key := range w.Keys(Tickets) {
		t, _ := typed[ledger.Ticket](&w.Objects, Tickets, key)
		if t.Node != n || t.Parameters == "" || t.Phase != ledger.TicketGranted || t.SatisfiedSince == 0 || VersionOf(t) > known {
			continue
		}
		for _, v := range j.told[t.UID] {
			if slices.Contains(j.UsedBy(w, p), v) && !j.mayTakeFrom(w, At{v, n}) {
				j.fault("pod %s is bound to %s while ticket %s has %s there with parameters", p.UID, n, t.ID.Name, v)
			}
		}
	}
}

// tellsDetached judges a ticket that is told that its volumes are at no node.
func (j *Judge) tellsDetached(w *World, was, is ledger.Ticket) {
	if is.Node != ledger.Detached || is.SatisfiedSince == 0 || was.SatisfiedSince != 0 {
		return
	}
	if is.Phase != ledger.TicketGranted {
		j.fault("ticket %s is told that it is satisfied, and is %s", is.ID.Name, is.Phase)
	}
	for _, v := range w.TicketVolumes(is) {
		for _, id := range w.Disks.At[v] {
			j.keepsDetached(w, v, id, "attached to")
		}
		for _, id := range slices.Sorted(maps.Keys(w.Machines)) {
			if n, _ := w.Node(w.Machines[id].Node); v.NoAttach() && !lacks(n.Reported, v) {
				j.keepsDetached(w, v, id, "attached to")
			}
			if w.writes(w.Machines[id], v) {
				j.keepsDetached(w, v, id, "mounted at")
			}
		}
	}
}

// places: the scheduler chooses a node for a ticket that leaves it open, and no other one while the ticket
// is granted.
func (j *Judge) places(t ledger.Ticket, r Request) {
	switch {
	case !t.Wherever:
		j.fault("ticket %s, which names node %s, is put at %s", t.ID.Name, t.Node, r.Node)
	case t.Phase == ledger.TicketGranted && t.Node != r.Node:
		j.fault("ticket %s is put from %s to %s while it is granted", t.ID.Name, t.Node, r.Node)
	}
}

// deletesUnder: a volume leaves no node while a ticket was told that it has it there, unless a rule of
// force holds: only that ticket's user knows its use. Nor after the ticket has ended, if its user can't
// know that (ticketLoses). If the rule held when the deletion was sent, and the node is Ready again since,
// it is listed, as in overtaken: no precondition excludes that.
func (j *Judge) deletesUnder(w *World, at At, uid string, since int64) {
	p, noted := j.ended[at]
	overtaken := noted && p.attachment == uid && since > p.made && since < p.at
	tickets := j.holders(w, at)
	if j.unheard[at] {
		tickets = append(tickets, "which ended while the node was not Ready")
	}
	for _, ticket := range tickets {
		switch {
		case j.ground(w, at) != noGround:
		case overtaken:
			j.Overtaken = append(slices.Clip(j.Overtaken), fmt.Sprintf("%s at %s", at.Volume, at.Node))
		default:
			j.fault("%s is detached from %s while ticket %s has it", at.Volume, at.Node, ticket)
		}
	}
}

// holders names the tickets that were told that they have a volume at a node.
func (j *Judge) holders(w *World, at At) (names []string) {
	for _, key := range w.Keys(Tickets) {
		t, _ := typed[ledger.Ticket](&w.Objects, Tickets, key)
		if t.Phase == ledger.TicketGranted && t.SatisfiedSince != 0 && t.Node == at.Node && slices.Contains(j.told[t.UID], at.Volume) {
			names = append(names, t.ID.Name)
		}
	}
	return names
}

// since is how long a state has lasted that began at a time in seconds since 1970, in words.
func since(w *World, began int64) string {
	if began == 0 {
		return "no time"
	}
	return w.Now.Sub(time.Unix(began, 0)).String()
}
