// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"time"
)

func (a Attachment) apply(l *Ledger, now time.Time, t *Touched) {
	l.seeToken(a.Transitions)
	old := l.facts.attachments.get(a.Name)
	if old != nil && !old.olderThan(a.Version) {
		return
	}
	wasAttached := old != nil && old.attached
	if wasAttached && old.is(a.UID) && old.to.nodeID != "" {
		// An external-attacher that lists volumes stamps and publishes again if the volume is missing under
		// the CSINode's present nodeID. Its earlier publish stays.
		a.NodeID = old.to.nodeID
	}
	if old != nil && old.is(a.UID) && old.to.node == a.Node && old.pv == a.PersistentVolume && old.inline == !a.Inline.IsZero() {
		// Common case: only the status changed.
		packed := a.pack(old.handle, l.machine(&a, old.to.driver, old), old.pv, old.own)
		packed.byName = old.byName
		l.writeAttachment(now, t, old, a.Name, packed)
	} else {
		l.newAttachment(now, t, old, &a)
	}
	switch {
	case a.AttachError.Code == ResourceExhausted && !a.Attached && !a.Deleting:
		l.refuse(now, t, a.Node, a.Driver)
	case a.Attached && !wasAttached:
		l.exhausted(t, a.Node, a.Driver, false) // there was room
	}
}

// newAttachment reads an attachment that is new or was another.
func (l *Ledger) newAttachment(now time.Time, t *Touched, old *attachmentRecord, a *Attachment) {
	same := old
	if old != nil && !old.is(a.UID) {
		same = nil
	}
	at, byName := l.source(a, same)
	l.replaceAttachment(now, t, old, a, at, byName)
}

// replaceAttachment replaces the known state of an attachment's name by an attachment of a volume.
func (l *Ledger) replaceAttachment(now time.Time, t *Touched, old *attachmentRecord, a *Attachment, at VolumeID, byName bool) {
	if old != nil {
		l.unlinkAttachment(old, a.Name)
	}
	pv := a.PersistentVolume
	if rec := l.facts.pvs.get(pv); rec != nil {
		pv = rec.Name // shares the bytes
	}
	if v := l.facts.volumes.get(at); v != nil {
		at = v.ID // likewise
	}
	if !at.IsReal() || byName {
		rec := l.pv(pv)
		rec.attachments = add(rec.attachments, a.Name)
	}
	if !at.IsReal() {
		rec := l.unmatchedAt(driverNode{at.Driver, a.Node})
		rec.attachments = add(rec.attachments, a.Name)
	}
	to := l.machine(a, at.Driver, old)
	packed := a.pack(at.Handle, to, pv, leadsTo(a.Name, at, to.node))
	packed.byName = byName
	l.writeAttachment(now, t, old, a.Name, packed)
	if old != nil {
		l.sourceFree(t, old)
	}
	l.sourceTaken(t, pv, at, &packed)
	if rec := l.facts.pvs.get(pv); rec != nil && slices.Contains(l.attachedUnder(rec), at) {
		l.resolveUnreadAgain(now, t, func(u *Unread) bool { return u.PersistentVolume == pv })
	}
	if byName && !l.facts.complete.IsZero() { // see attachedAs
		for _, key := range l.facts.pvs.get(pv).claims {
			l.claimChanged(now, t, key)
		}
	}
}

// source is an attachment's volume, and whether only its name says so. old is its former state or nil.
// Without a source it is a placeholder.
func (l *Ledger) source(a *Attachment, old *attachmentRecord) (at VolumeID, byName bool) {
	if !a.Inline.IsZero() {
		return a.Inline, false
	}
	known := old != nil && old.at().IsReal()
	if known && !old.byName {
		return old.at(), false // even without its PersistentVolume
	}
	if pv := l.facts.pvs.get(a.PersistentVolume); pv != nil && pv.exists && !pv.Volume.IsZero() && !madeForAnother(a, pv.Volume) {
		return pv.Volume, false
	}
	if known {
		return old.at(), true
	}
	if at = l.volumeNamedBy(a); !at.IsZero() {
		return at, true
	}
	return unknownSource(a.Driver, a.Name), false
}

// madeForAnother: the name follows from another volume and node, since the PersistentVolume was made again
// for another disk. A name of another form says nothing.
func madeForAnother(a *Attachment, v VolumeID) bool {
	return NamesAnother(a.Name, v, a.Node)
}

// machine is the node that an attachment of a driver's volume names; a known node if possible.
func (l *Ledger) machine(a *Attachment, driver string, old *attachmentRecord) *machine {
	to := machine{a.Node, driver, a.NodeID, a.Note}
	to.note.Pod = ""
	if old != nil && *old.to == to {
		return old.to
	}
	n := l.facts.nodes.get(a.Node)
	if n == nil {
		return &to
	}
	i, ok := n.driver(driver)
	if !ok {
		return &to
	}
	for _, known := range []*machine{n.Drivers[i].to, n.Drivers[i].noted} {
		if known != nil && *known == to {
			return known
		}
	}
	if to.note != (Note{}) {
		l.node(a.Node).ownDriver(driver).noted = &to
	}
	return &to
}

// resolveAttachment places an attachment after its PersistentVolume was seen.
func (l *Ledger) resolveAttachment(now time.Time, t *Touched, name string) {
	old := l.facts.attachments.get(name)
	a := old.unpack()
	at, byName := l.source(a, old)
	switch {
	case at != old.at():
		l.replaceAttachment(now, t, old, a, at, byName)
	case byName != old.byName: // as the name says
		l.unlinkAttachment(old, name)
		l.changeVolumeOnNode(now, t, at, old.to.node, func(p *VolumeOnNode) { l.amend(p, old, func(r *attachmentRecord) { r.byName = byName }) })
	}
}

// amend changes the ledger's own facts about an attachment at a node.
func (l *Ledger) amend(p *VolumeOnNode, r *attachmentRecord, change func(*attachmentRecord)) {
	amended := *r
	amended.gen = l.gen
	change(&amended)
	l.facts.attachments.put(l.gen, amended.name(), &amended)
	p.takeAttachment(r)
	p.putAttachment(&amended)
}

// writeAttachment replaces an attachment's record, also at its place.
func (l *Ledger) writeAttachment(now time.Time, t *Touched, old *attachmentRecord, name string, rec attachmentRecord) {
	rec.gen = l.gen
	rec.noteDeletion(old, now.Sub(l.facts.epoch))
	same := old != nil && old.at() == rec.at() && old.to.node == rec.to.node
	noted := old == nil || !same || old.to != rec.to || old.pod != rec.pod
	if !noted && old.gen == l.gen && old.uid == rec.uid && old.odd == nil && rec.odd == nil && !old.proved {
		marked := old.underWay()
		*old = rec // in no snapshot, with no dependents
		if marked != rec.underWay() {
			l.facts.attachments.put(l.gen, name, old)
		}
		t.volume(rec.at())
		return
	}
	fresh := rec       // rec stays on the stack
	var lasting []Boot // of mounts only in the replaced note
	if v := l.facts.volumes.get(rec.at()); same && old.noted() && old.uid != rec.uid && old.to.note != rec.to.note {
		lasting = l.facts.unknown(v, v.OnNode(rec.to.node))
	}
	l.facts.attachments.put(l.gen, name, &fresh)
	l.changeVolumeOnNode(now, t, fresh.at(), fresh.to.node, func(p *VolumeOnNode) {
		if same {
			p.takeAttachment(old)
		}
		p.putAttachment(&fresh)
		if fresh.own {
			p.Proof = Proof{}
		}
	})
	if noted {
		l.seeNote(now, t, &fresh)
		if same {
			l.listMadeFor(now, t, old)
		}
	}
	switch {
	case old != nil && !same:
		l.leaveAttachment(now, t, old)
	case same && old.own && old.uid != fresh.uid:
		l.trust(now, t, old.to.node, old.at())
		for _, b := range lasting {
			l.makeUnknown(now, t, old.at(), old.to.node, b)
		}
	}
}

// seeNote notes a note in its volume (Volume.Record), and lists the volume for the note's pod.
func (l *Ledger) seeNote(now time.Time, t *Touched, r *attachmentRecord) {
	if v := l.facts.volumes.get(r.at()); v != nil && !v.noted && r.noted() {
		l.volume(r.at()).noted = true
	}
	l.listMadeFor(now, t, r)
}

// listMadeFor lists a volume for the pod for which an attachment was made, or ends that with the attachment.
func (l *Ledger) listMadeFor(now time.Time, t *Touched, r *attachmentRecord) {
	if r.pod != "" && l.listPod(r.pod, r.at()) {
		l.updatePodVolumes(now, t, r.pod)
	}
}

func (l *Ledger) leaveAttachment(now time.Time, t *Touched, r *attachmentRecord) {
	l.changeVolumeOnNode(now, t, r.at(), r.to.node, func(p *VolumeOnNode) {
		p.takeAttachment(r)
		if r.own {
			p.Proof = Proof{}
		}
	})
	l.listMadeFor(now, t, r)
	if p := l.facts.volumes.get(r.at()).OnNode(r.to.node); r.own || p != nil && !p.HasAttachments() && !p.WithoutAttachment() {
		l.trust(now, t, r.to.node, r.at())
	}
}

func (e AttachmentGone) apply(l *Ledger, now time.Time, t *Touched) {
	old := l.facts.attachments.get(e.Name)
	if old == nil {
		return
	}
	l.unlinkAttachment(old, e.Name)
	if at := old.at(); at.IsReal() {
		l.volume(at).left = &left{old.to.node, now}
	}
	l.leaveAttachment(now, t, old)
	l.facts.attachments.del(l.gen, e.Name)
	l.sourceFree(t, old)
	if old.attached {
		l.exhausted(t, old.to.node, old.driver(), false) // a slot is free
	}
}

// sourceTaken touches the PersistentVolume's present volume: it may be another that waits for the
// attachment's end.
func (l *Ledger) sourceTaken(t *Touched, pv string, at VolumeID, r *attachmentRecord) {
	rec := l.facts.pvs.get(pv)
	if rec != nil {
		t.volume(rec.Volume)
	}
	if at.IsReal() && r.byPV() && (rec == nil || rec.Volume != at) {
		rec = l.pv(pv)
		rec.outlived = add(rec.outlived, at)
	}
}

// sourceFree touches the PersistentVolume's present volume: it may be another that has waited (rules,
// VolumeReplaced).
func (l *Ledger) sourceFree(t *Touched, r *attachmentRecord) {
	rec := l.facts.pvs.get(r.pv)
	if rec == nil {
		return
	}
	t.volume(rec.Volume)
	if i := slices.Index(rec.outlived, r.at()); i >= 0 && !l.facts.volumes.get(r.at()).attachedFor(r.pv) {
		rec = l.pv(r.pv)
		rec.outlived = removeAt(rec.outlived, i)
		l.sweepPV(rec)
	}
}

// unlinkAttachment removes an attachment from the lists of attachments that wait for their PersistentVolume
// or volume.
func (l *Ledger) unlinkAttachment(r *attachmentRecord, name string) {
	if !r.at().IsReal() {
		u := l.unmatchedAt(driverNode{r.to.driver, r.to.node})
		u.attachments = drop(u.attachments, name)
		l.sweepUnmatched(u)
	} else if !r.byName {
		return
	}
	rec := l.pv(r.pv)
	rec.attachments = drop(rec.attachments, name)
	l.sweepPV(rec)
}

// refusal is a driver's answer that a node is full.
type refusal struct {
	node   NodeName
	driver string
	at     time.Time // last heard
}

// refuse notes that a driver has refused an attach at a node for want of room.
//
//	Invariant: refusals is in the order of at, has a node and driver at most
//	once, and has all that are Exhausted
func (l *Ledger) refuse(now time.Time, t *Touched, n NodeName, driver string) {
	l.exhausted(t, n, driver, true)
	l.refusals = slices.DeleteFunc(l.refusals, func(r refusal) bool { return r.node == n && r.driver == driver })
	l.refusals = append(l.refusals, refusal{n, driver, now})
}

func (e RefusalsOver) apply(l *Ledger, _ time.Time, t *Touched) {
	for len(l.refusals) > 0 && !l.refusals[0].at.After(e.Until) {
		l.exhausted(t, l.refusals[0].node, l.refusals[0].driver, false)
		l.refusals = l.refusals[1:]
	}
}

// exhausted notes whether a driver last reported no room at a node.
func (l *Ledger) exhausted(t *Touched, n NodeName, driver string, is bool) {
	if l.facts.nodes.get(n).Driver(driver).Exhausted == is {
		return
	}
	rec := l.node(n)
	rec.ownDriver(driver).Exhausted = is
	rec.sweepDrivers()
	t.node(n)
}

// putAttachment adds an attachment: own first, then by name.
func (p *VolumeOnNode) putAttachment(r *attachmentRecord) {
	if p.first == nil {
		p.first = r
		return
	}
	list := append(slices.Clip(p.records()), r)
	slices.SortFunc(list, compareAttachments)
	p.setRecords(list)
}

func (p *VolumeOnNode) takeAttachment(r *attachmentRecord) {
	if p.first == r && p.more == nil {
		p.first = nil
		return
	}
	if list := p.records(); slices.Contains(list, r) {
		p.setRecords(drop(list, r))
	}
}

// records lists copies that the caller owns.
func (p *VolumeOnNode) records() []*attachmentRecord {
	if p.first == nil {
		return nil
	}
	list := []*attachmentRecord{p.first}
	if p.more != nil {
		list = append(list, *p.more...)
	}
	return list
}

// setRecords takes one record or more.
func (p *VolumeOnNode) setRecords(list []*attachmentRecord) {
	p.first, p.more = list[0], nil
	if len(list) > 1 {
		rest := list[1:]
		p.more = &rest
	}
}
