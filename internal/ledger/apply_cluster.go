// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"slices"
	"time"
)

func (a Attachment) apply(l *Ledger, now time.Time, t *Touched) {
	old := l.world.attachments.get(a.Name)
	if old != nil {
		if !Newer(a.Version, old.Version) {
			return
		}
		if old.PersistentVolume != a.PersistentVolume {
			l.unlinkAttachment(old)
		}
		if old.UID == a.UID {
			a.at, a.own = old.at, old.own
		}
	}
	l.world.attachments.put(l.gen, &a)
	if a.PersistentVolume != "" {
		if rec := l.world.pvs.get(a.PersistentVolume); rec == nil || !slices.Contains(rec.attachments, a.Name) {
			rec := l.pv(a.PersistentVolume)
			rec.attachments = add(rec.attachments, a.Name)
		}
	}
	l.placeAttachment(now, t, old, a.Name)
	switch {
	case a.AttachError.Code == ResourceExhausted && !a.Attached && !a.Deleting:
		l.exhausted(t, a.Node, a.Driver, true)
	case a.Attached && (old == nil || !old.Attached):
		l.exhausted(t, a.Node, a.Driver, false) // there was room after all
	}
}

// exhausted notes whether a driver has refused an attach at a node for want
// of room.
func (l *Ledger) exhausted(t *Touched, n NodeName, driver string, is bool) {
	if l.world.nodes.get(n).Driver(driver).Exhausted == is {
		return
	}
	rec := l.node(n)
	rec.ownDriver(driver).Exhausted = is
	rec.sweepDrivers()
	t.node(n)
}

func (e AttachmentGone) apply(l *Ledger, now time.Time, t *Touched) {
	old := l.world.attachments.get(e.Name)
	if old == nil {
		return
	}
	l.unlinkAttachment(old)
	l.leaveAttachment(now, t, old)
	l.world.attachments.del(l.gen, e.Name)
	if old.Attached {
		l.exhausted(t, old.Node, old.Driver, false) // a slot came free
	}
}

// placeAttachment puts the attachment, in its newest version, at its place,
// and takes the old version, if any, from where it was.
func (l *Ledger) placeAttachment(now time.Time, t *Touched, old *Attachment, name string) {
	a := l.world.attachments.get(name)
	if a == nil {
		return
	}
	at := a.Inline
	if at.IsZero() {
		pv := l.world.pvs.get(a.PersistentVolume)
		switch {
		case pv != nil && pv.exists && !pv.Volume.IsZero():
			at = pv.Volume
		case a.at.IsZero():
			at = unknownSource(a.Driver, name)
		default:
			at = a.at
		}
	}
	if a.at != at {
		moved := *a
		moved.at, moved.own = at, at.IsReal() && a.Name == AttachmentName(at, a.Node)
		a = &moved
		l.world.attachments.put(l.gen, a)
	}
	l.at(now, t, at, a.Node, func(p *Place) {
		i := slices.IndexFunc(p.Attachments, func(b *Attachment) bool { return b.Name == a.Name })
		switch {
		case i < 0 && len(p.Attachments) == 0:
			p.Attachments = []*Attachment{a}
		case i < 0:
			p.Attachments = sortAttachments(append(slices.Clip(p.Attachments), a))
		default:
			p.Attachments = slices.Clone(p.Attachments)
			p.Attachments[i] = a
		}
		if a.own && p.Proof != (Proof{p.Proof.Stage, a.UID, a.Version}) {
			p.Proof = Proof{}
		}
	})
	if old != nil && (old.at != at || old.Node != a.Node) {
		l.leaveAttachment(now, t, old)
	}
}

// sortAttachments puts the own attachment first.
func sortAttachments(as []*Attachment) []*Attachment {
	slices.SortFunc(as, func(a, b *Attachment) int {
		return cmp.Or(count(b.own)-count(a.own), cmp.Compare(a.Name, b.Name))
	})
	return as
}

func (l *Ledger) leaveAttachment(now time.Time, t *Touched, a *Attachment) {
	if a.at.IsZero() {
		return
	}
	l.at(now, t, a.at, a.Node, func(p *Place) {
		if i := slices.IndexFunc(p.Attachments, func(b *Attachment) bool { return b.Name == a.Name }); i >= 0 {
			p.Attachments = removeAt(p.Attachments, i)
		}
		if a.own {
			p.Proof = Proof{}
		}
	})
}

func (l *Ledger) unlinkAttachment(a *Attachment) {
	if a.PersistentVolume == "" {
		return
	}
	rec := l.pv(a.PersistentVolume)
	rec.attachments = drop(rec.attachments, a.Name)
	l.sweepPV(rec)
}

func (s NodeState) apply(l *Ledger, now time.Time, t *Touched) {
	old := l.world.nodes.get(s.Name)
	known := old != nil && old.Exists && old.UID == s.UID
	if known && !Newer(s.Version, old.Version) {
		return
	}
	inUse, reported := distinct(s.InUse), distinct(s.Reported)
	s.InUse, s.Reported = nil, nil
	s.Reporting = s.Reporting || known && old.Reporting // of this object, once is for ever
	rec := l.node(s.Name)
	since, wasReady := rec.NotReady, rec.Exists && rec.Ready == ReadyTrue
	healthChanged := !known || rec.Ready != s.Ready || rec.OutOfService != s.OutOfService ||
		rec.Managed != s.Managed || rec.Draining != s.Draining || rec.Reporting != s.Reporting
	rec.NodeState, rec.Exists = s, true
	switch {
	case s.Ready == ReadyTrue:
		rec.NotReady, rec.SawFail = time.Time{}, false
	case since.IsZero():
		rec.NotReady, rec.SawFail = now, wasReady
	}
	if healthChanged {
		t.Volumes = append(t.Volumes, rec.At...)
		t.node(s.Name)
	}
	// First what is there, then what is not: a place that stays is never lost
	// in between, and its clock runs on.
	l.list(now, t, s.Name, reported, func(p *Place) *bool { return &p.Reported })
	l.list(now, t, s.Name, inUse, func(p *Place) *bool { return &p.InUse })
	l.unlist(now, t, s.Name, reported, func(n *Node) int { return n.reported }, func(p *Place) *bool { return &p.Reported })
	if s.Reporting {
		// A new object of an old name says nothing about use until its own
		// kubelet has reported: what was in use before stays so.
		l.unlist(now, t, s.Name, inUse, func(n *Node) int { return n.inUse }, func(p *Place) *bool { return &p.InUse })
	}
}

// distinct is a list without doubles; nearly always the list itself.
func distinct(list []VolumeID) []VolumeID {
	if slices.IsSortedFunc(list, func(a, b VolumeID) int { return cmp.Or(compareVolumes(a, b), -1) }) {
		return list
	}
	list = slices.Clone(list)
	slices.SortFunc(list, compareVolumes)
	return slices.Compact(list)
}

// list sets one bit of the places that a list of the node's status names. The
// usual report changes nothing, and then costs one look-up a volume.
func (l *Ledger) list(now time.Time, t *Touched, n NodeName, is []VolumeID, bit func(*Place) *bool) {
	for _, v := range is {
		if p := l.world.volumes.get(v).Place(n); p == nil || !*bit(p) {
			l.at(now, t, v, n, func(p *Place) {
				*bit(p) = true
				p.Proof = Proof{}
			})
		}
	}
}

// unlist clears the bit of the node's places that the list does not name.
// total is how many places have it: the list's length when there are none.
func (l *Ledger) unlist(now time.Time, t *Touched, n NodeName, is []VolumeID, total func(*Node) int, bit func(*Place) *bool) {
	rec := l.world.nodes.get(n)
	if rec == nil || total(rec) == len(is) {
		return
	}
	listed := make(map[VolumeID]bool, len(is))
	for _, v := range is {
		listed[v] = true
	}
	for _, v := range slices.Clone(rec.At) {
		if p := l.world.volumes.get(v).Place(n); p != nil && *bit(p) && !listed[v] {
			l.at(now, t, v, n, func(p *Place) { *bit(p) = false })
		}
	}
}

func (e NodeGone) apply(l *Ledger, now time.Time, t *Touched) {
	old := l.world.nodes.get(e.Name)
	if old == nil || !old.Exists {
		return
	}
	rec := l.node(e.Name)
	// What it had in use stays so: a deleted Node object proves nothing.
	wasReady := rec.Ready == ReadyTrue
	rec.Exists, rec.Ready, rec.Reporting = false, ReadyUnknown, false
	if rec.NotReady.IsZero() {
		rec.NotReady, rec.SawFail = now, wasReady
	}
	t.Volumes = append(t.Volumes, rec.At...)
	t.node(e.Name)
	l.unlist(now, t, e.Name, nil, func(n *Node) int { return n.reported }, func(p *Place) *bool { return &p.Reported })
	l.sweepNode(l.node(e.Name))
}

func (d NodeDrivers) apply(l *Ledger, _ time.Time, t *Touched) {
	old := l.world.nodes.get(d.Node)
	if old != nil && old.CSINode && !Newer(d.Version, old.CSIRev) {
		return
	}
	rec := l.node(d.Node)
	rec.CSINode, rec.CSIRev = true, d.Version
	for i := range rec.Drivers {
		rec.Drivers[i].Registered = false
	}
	for _, driver := range d.Drivers {
		own := rec.ownDriver(driver.Name)
		own.DriverOnNode, own.Registered, own.Exhausted = driver, true, false
	}
	rec.sweepDrivers()
	t.node(d.Node)
	t.Volumes = append(t.Volumes, rec.At...)
}

func (e NodeDriversGone) apply(l *Ledger, _ time.Time, t *Touched) {
	if old := l.world.nodes.get(e.Node); old == nil || !old.CSINode {
		return
	}
	rec := l.node(e.Node)
	rec.CSINode, rec.CSIRev = false, ""
	for i := range rec.Drivers {
		rec.Drivers[i].Registered = false
	}
	rec.sweepDrivers()
	t.node(e.Node)
	t.Volumes = append(t.Volumes, rec.At...)
	l.sweepNode(rec)
}

func (e HoldSeen) apply(l *Ledger, now time.Time, t *Touched) {
	old := l.world.volumes.get(e.Volume)
	if old != nil && old.Hold != nil && !Newer(e.Hold.Version, old.Hold.Version) {
		return
	}
	hold := e.Hold
	rec := l.volume(e.Volume)
	if rec.Hold == nil {
		rec.Forced, rec.ForcedAt = hold.Force, now
	}
	rec.Hold = &hold
	t.volume(e.Volume)
}

func (e HoldGone) apply(l *Ledger, _ time.Time, t *Touched) {
	if old := l.world.volumes.get(e.Volume); old == nil || old.Hold == nil {
		return
	}
	rec := l.volume(e.Volume)
	rec.Hold = nil
	t.volume(e.Volume)
	l.sweep(rec)
}

func (e Unreported) apply(l *Ledger, now time.Time, t *Touched) {
	n := l.world.nodes.get(e.Node)
	exists := n != nil && n.Exists
	if l.prove(now, t, e.Volume, e.Node, Proof{ProofUnreported, e.UID, e.Version}) {
		l.at(now, t, e.Volume, e.Node, func(p *Place) {
			p.Reported = false
			p.InUse = p.InUse && e.Forced && exists // nobody would take back what a node that is gone has said
		})
	}
}

func (e Unwanted) apply(l *Ledger, now time.Time, t *Touched) {
	l.prove(now, t, e.Volume, e.Node, Proof{ProofUnwanted, e.UID, e.Version})
}

// prove records a proof about a place that is still as it was when the proof
// began, and says whether it did. A proof never skips a stage.
func (l *Ledger) prove(now time.Time, t *Touched, v VolumeID, n NodeName, proof Proof) bool {
	p := l.world.volumes.get(v).Place(n)
	if p == nil {
		return false
	}
	uid, version := "", ""
	if a := p.Own(); a != nil {
		uid, version = a.UID, a.Version
	}
	if uid != proof.UID || version != proof.Version {
		return false
	}
	if proof.Stage == ProofUnwanted && p.Proof != (Proof{ProofUnreported, uid, version}) {
		return false
	}
	l.at(now, t, v, n, func(p *Place) { p.Proof = proof })
	return true
}
