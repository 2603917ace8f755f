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
		if old.UID == a.UID && !Newer(a.Version, old.Version) {
			return
		}
		if old.PersistentVolume != a.PersistentVolume {
			l.unlinkAttachment(old)
		}
		a.at = old.at
		if old.UID != a.UID || old.Node != a.Node {
			l.leaveAttachment(now, t, old)
			a.at = VolumeID{}
		}
	}
	l.world.attachments.put(l.gen, &a)
	if a.PersistentVolume != "" {
		if rec := l.world.pvs.get(a.PersistentVolume); rec == nil || !slices.Contains(rec.attachments, a.Name) {
			rec := l.pv(a.PersistentVolume)
			rec.attachments = add(rec.attachments, a.Name)
		}
	}
	l.placeAttachment(now, t, a.Name)
	if a.AttachError.Code == ResourceExhausted && !a.Attached && !a.Deleting {
		l.node(a.Node).ownDriver(a.Driver).Exhausted = true
		t.node(a.Node)
	}
}

func (e AttachmentGone) apply(l *Ledger, now time.Time, t *Touched) {
	old := l.world.attachments.get(e.Name)
	if old == nil {
		return
	}
	l.unlinkAttachment(old)
	l.leaveAttachment(now, t, old)
	l.world.attachments.del(l.gen, e.Name)
	if n := l.world.nodes.get(old.Node); n != nil && old.Attached && n.Driver(old.Driver).Exhausted {
		l.node(old.Node).ownDriver(old.Driver).Exhausted = false
		t.node(old.Node)
	}
}

// placeAttachment puts the attachment, in its newest version, at its place.
func (l *Ledger) placeAttachment(now time.Time, t *Touched, name string) {
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
		l.leaveAttachment(now, t, a)
		moved := *a
		moved.at = at
		a = &moved
		l.world.attachments.put(l.gen, a)
	}
	l.at(now, t, at, a.Node, func(p *Place) {
		i := slices.IndexFunc(p.Attachments, func(b *Attachment) bool { return b.Name == a.Name })
		switch {
		case i < 0 && len(p.Attachments) == 0:
			p.Attachments = []*Attachment{a}
		case i < 0:
			p.Attachments = sortAttachments(at, append(slices.Clip(p.Attachments), a))
		default:
			p.Attachments = slices.Clone(p.Attachments)
			p.Attachments[i] = a
		}
		if p.Proof.Stage != ProofNone && (p.Proof.UID != a.UID || p.Proof.Version != a.Version) {
			p.Proof = Proof{}
		}
	})
}

// sortAttachments puts the attachment with the deterministic name first.
func sortAttachments(v VolumeID, as []*Attachment) []*Attachment {
	own := AttachmentName(v, as[0].Node)
	slices.SortFunc(as, func(a, b *Attachment) int {
		if (a.Name == own) != (b.Name == own) {
			return count(b.Name == own) - count(a.Name == own)
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return as
}

func (l *Ledger) leaveAttachment(now time.Time, t *Touched, a *Attachment) {
	if a.at.IsZero() {
		return
	}
	l.at(now, t, a.at, a.Node, func(p *Place) {
		for _, b := range p.Attachments {
			if b.Name == a.Name {
				p.Attachments = drop(p.Attachments, b)
				break
			}
		}
		p.Proof = Proof{}
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
	inUse, reported := s.InUse, s.Reported
	s.InUse, s.Reported = nil, nil
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
	l.lists(now, t, s.Name, reported, func(n *Node) int { return n.reported }, func(p *Place) *bool { return &p.Reported })
	if s.Reporting || known {
		// A new object of an old name says nothing about use until its own
		// kubelet has reported: what was in use before stays so.
		l.lists(now, t, s.Name, inUse, func(n *Node) int { return n.inUse }, func(p *Place) *bool { return &p.InUse })
	}
}

// lists brings one bit of the node's places in line with a list of the node's
// status. The usual report changes nothing, and then costs one look-up a
// volume and no allocation.
func (l *Ledger) lists(now time.Time, t *Touched, n NodeName, is []VolumeID, total func(*Node) int, bit func(*Place) *bool) {
	for _, v := range is {
		if p := l.world.volumes.get(v).Place(n); p == nil || !*bit(p) {
			l.at(now, t, v, n, func(p *Place) {
				*bit(p) = true
				p.Proof = Proof{}
			})
		}
	}
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
	l.lists(now, t, e.Name, nil, func(n *Node) int { return n.reported }, func(p *Place) *bool { return &p.Reported })
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
	t.node(e.Node)
	l.sweepNode(rec)
}

func (e HoldSeen) apply(l *Ledger, _ time.Time, t *Touched) {
	old := l.world.volumes.get(e.Volume)
	if old != nil && old.Hold != nil && !Newer(e.Hold.Version, old.Hold.Version) {
		return
	}
	hold := e.Hold
	rec := l.volume(e.Volume)
	if rec.Hold == nil {
		rec.Forced = hold.Force
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
	if l.prove(now, t, e.Volume, e.Node, Proof{ProofUnreported, e.UID, e.Version}) {
		l.at(now, t, e.Volume, e.Node, func(p *Place) {
			p.Reported = false
			p.InUse = p.InUse && e.Forced
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
	if a := p.Canonical(); a != nil {
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
