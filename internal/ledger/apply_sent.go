// SPDX-License-Identifier: Apache-2.0

package ledger

import "time"

func (e AttachSent) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	p := l.facts.volumes.get(e.Volume).OnNode(e.Node)
	if p == nil || !p.Left && !l.occupied(p) {
		return
	}
	if taken := l.facts.nodes.get(e.Node).Driver(e.Volume.Driver).Occupied; e.Limit > 0 && taken >= e.Limit && !p.OccupiesSlotWithoutUse() {
		return
	}
	l.changeVolumeOnNode(now, t, e.Volume, e.Node, func(p *VolumeOnNode) { p.Sent, p.CreateFailed = true, false })
}

func (e AttachResolved) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	if p := l.facts.volumes.get(e.Volume).OnNode(e.Node); p != nil && p.Sent {
		l.changeVolumeOnNode(now, t, e.Volume, e.Node, func(p *VolumeOnNode) { p.Sent, p.CreateFailed = false, e.Failed })
	}
}

func (e GrantSent) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	k := l.facts.tickets.get(e.ID)
	if k == nil || k.UID != e.UID || k.Version != e.Version || k.Phase != TicketPending {
		return
	}
	l.grants(now, t, k, true)
}

func (e GrantResolved) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	k := l.facts.tickets.get(e.ID)
	if k == nil || k.UID != e.UID || k.Version != e.Version || !k.Granting {
		return
	}
	l.grants(now, t, k, false)
	t.ticket(k.ID)
	for _, v := range k.at {
		t.volume(v) // others may await the outcome
	}
}

// grants notes whether a grant of a ticket may be in flight.
func (l *Ledger) grants(now time.Time, t *Touched, k *Ticket, sent bool) {
	next := *k
	next.Granting = sent
	l.facts.tickets.put(l.gen, k.ID, &next)
	l.phaseChanged(now, t, k.ID)
}
