// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

func (s NodeState) apply(l *Ledger, now time.Time, t *Touched) {
	old := l.facts.nodes.get(s.Name)
	known := old != nil && old.Exists && old.UID == s.UID
	if known && !Newer(s.Version, old.Version) {
		return
	}
	inUse, reported := distinct(s.InUse), distinct(s.Reported)
	s.InUse, s.Reported = nil, nil
	s.Reporting = s.Reporting || known && old.Reporting // for this object, once is forever
	rec := l.node(s.Name)
	since, wasReady := rec.NotReady, rec.Exists && rec.Ready == ReadyTrue
	if !known || another(rec.NodeState, s) {
		since = time.Time{}
	}
	wrote := rec.wrote(s, now)
	ended := s.Ready == ReadyTrue && rec.Ready != ReadyTrue || wrote.Equal(now) || !known || rec.OutOfService && !s.OutOfService || rec.Shutdown && !s.Shutdown
	was, answered := rec.NodeState, rec.Answers()
	healthChanged := !known || !was.SameHealth(&s)
	labelsChanged := !maps.Equal(rec.Labels, s.Labels) || rec.SELinuxMount != s.SELinuxMount
	rec.NodeState, rec.Exists = s, true
	switch {
	case s.Ready == ReadyTrue:
		rec.NotReady, rec.SawFail = time.Time{}, false
		rec.forgetLease()
	case since.IsZero():
		rec.NotReady, rec.SawFail = now, wasReady
		rec.forgetLease()
	case wrote.After(rec.Heard):
		rec.heard(wrote)
	}
	rec.OutOfServiceAt = taintedAt(rec.OutOfServiceAt, s.OutOfService, known, now)
	rec.ShutdownAt = taintedAt(rec.ShutdownAt, s.Shutdown, known, now)
	replaced := rec.seeMachine(&was, &s, now)
	fencedChanged, fenceEnded := rec.seeFenced(&was, known, now)
	rec.seeCutOff(&was, known, replaced)
	cutChanged := !slices.Equal(was.CutOff, s.CutOff)
	letIn := slices.ContainsFunc(was.CutOff, func(driver string) bool { return !slices.Contains(s.CutOff, driver) })
	if healthChanged || fencedChanged || cutChanged {
		t.Volumes = append(t.Volumes, l.touchable(rec)...)
		t.node(s.Name)
	}
	if labelsChanged { // more volumes may be allowed here
		t.node(s.Name)
	}
	if ended || replaced || fenceEnded || letIn {
		l.voidForced(now, t, rec)
	}
	l.recount(now, t, rec)
	l.takeLists(now, t, &was, &s, known, reported, inUse)
	if was.SystemUUID != s.SystemUUID {
		l.cloneGone(now, t, was.SystemUUID)
	}
	if rec := l.node(s.Name); answered != rec.Answers() || was.SystemUUID != s.SystemUUID {
		// Its report may precede its Node, or the Node's naming of the unknown volume's machine.
		l.lookedForAll(now, t, rec)
	}
}

// SameHealth compares health, machine and boot.
func (s *NodeState) SameHealth(other *NodeState) bool {
	return s.Ready == other.Ready && s.OutOfService == other.OutOfService && s.Shutdown == other.Shutdown &&
		s.Managed == other.Managed && s.Draining == other.Draining && s.Reporting == other.Reporting && s.BootID == other.BootID &&
		s.SystemUUID == other.SystemUUID && s.ProviderID == other.ProviderID
}

// takeLists takes in volumesAttached, volumesInUse and unknown volumes. known: the last state was of the
// same object.
func (l *Ledger) takeLists(now time.Time, t *Touched, was, s *NodeState, known bool, reported, inUse []VolumeID) {
	defer l.beginBulk(s.Name, reported, inUse)()
	stale := false
	if was.UID != s.UID || was.BootID != s.BootID || was.SystemUUID != s.SystemUUID || was.ProviderID != s.ProviderID {
		stale = l.seeBoot(now, t, was, s)
	}
	// Present entries come first, so that a lasting place keeps its clock.
	used, usedBit := func(n *Node) int { return n.inUse }, func(p *VolumeOnNode) *bool { return &p.InUse }
	l.list(now, t, s.Name, reported, func(p *VolumeOnNode) *bool { return &p.Reported })
	l.list(now, t, s.Name, inUse, usedBit)
	if stale {
		l.unlist(now, t, s.Name, inUse, used, usedBit)
	}
	if known {
		l.seeTaken(now, t, s.Name, reported)
	}
	l.unlist(now, t, s.Name, reported, func(n *Node) int { return n.reported }, func(p *VolumeOnNode) *bool { return &p.Reported })
	if s.Reporting {
		// A new object says nothing about use until its kubelet reports: volumes in use stay so.
		l.unlist(now, t, s.Name, inUse, used, usedBit)
	}
}

// taintedAt is when a taint was first seen on a Node.
func taintedAt(at time.Time, has, known bool, now time.Time) time.Time {
	switch {
	case !has:
		return time.Time{}
	case !known || at.IsZero():
		return now
	}
	return at
}

// another: the node was Ready since its last not Ready state, since the condition's time differs.
func another(was, is NodeState) bool { return was.Ready == is.Ready && was.ReadySince != is.ReadySince }

// forgetLease: writes while Ready say nothing of the next outage.
func (n *Node) forgetLease() {
	n.Heard, n.Renewed, n.RenewedAt, n.LeaseRead = time.Time{}, 0, time.Time{}, time.Time{}
	n.UnreadSince, n.ReadAgain, n.Unread = time.Time{}, time.Time{}, 0
}

// leaseGap is the longest gap in reading a Lease before an Unknown: the node controller reports that after
// at least this silence (kube-controller-manager, --node-monitor-grace-period).
const leaseGap = 40 * time.Second

// wrote is the last possible write of the kubelet of a node that stays not Ready, by its new state; zero:
// not shown. Only kubelets write False. The node controller writes Unknown: the kubelet was silent before
// only while this process read its Lease without a renewal.
func (n *Node) wrote(is NodeState, now time.Time) time.Time {
	switch {
	case n.Ready == ReadyUnknown && is.Ready == ReadyFalse:
		return now
	case n.Ready != ReadyFalse || is.Ready != ReadyUnknown:
		return time.Time{}
	case n.LeaseRead.IsZero() || now.Sub(n.LeaseRead) > leaseGap:
		return now
	case n.RenewedAt.After(n.NotReady):
		return n.RenewedAt
	}
	return time.Time{}
}

// distinct is a list without duplicates; nearly always the list itself.
func distinct(list []VolumeID) []VolumeID {
	if slices.IsSortedFunc(list, func(a, b VolumeID) int { return cmp.Or(a.Compare(b), -1) }) {
		return list
	}
	list = slices.Clone(list)
	slices.SortFunc(list, VolumeID.Compare)
	return slices.Compact(list)
}

// list sets a bit of the listed VolumeOnNodes. An unchanged volume costs a look-up.
func (l *Ledger) list(now time.Time, t *Touched, n NodeName, is []VolumeID, bit func(*VolumeOnNode) *bool) {
	for _, v := range is {
		if p := l.facts.volumes.get(v).OnNode(n); p == nil || !*bit(p) {
			l.changeVolumeOnNode(now, t, v, n, func(p *VolumeOnNode) {
				*bit(p) = true
				p.Proof = Proof{}
			})
		}
	}
}

// unlist clears the bit of omitted volumes. total counts places with it: the list's length if none is
// omitted.
func (l *Ledger) unlist(now time.Time, t *Touched, n NodeName, is []VolumeID, total func(*Node) int, bit func(*VolumeOnNode) *bool) {
	rec := l.facts.nodes.get(n)
	if rec == nil || total(rec) == len(is) {
		return
	}
	listed := make(map[VolumeID]bool, len(is))
	for _, v := range is {
		listed[v] = true
	}
	for _, v := range rec.At() {
		if p := l.facts.volumes.get(v).OnNode(n); p != nil && *bit(p) && !listed[v] {
			l.changeVolumeOnNode(now, t, v, n, func(p *VolumeOnNode) { *bit(p) = false })
		}
	}
}

func (e NodeGone) apply(l *Ledger, now time.Time, t *Touched) {
	old := l.facts.nodes.get(e.Name)
	if old == nil || !old.Exists {
		return
	}
	rec := l.node(e.Name)
	// A deleted Node object proves nothing: volumes in use stay so.
	wasReady, machine := rec.Ready == ReadyTrue, rec.SystemUUID
	defer func() { l.cloneGone(now, t, machine) }() // after its last facts
	defer l.beginBulk(e.Name)()
	l.dropFenced(now, t, rec)
	rec.OutOfServiceAt, rec.ShutdownAt, rec.FencedAt = time.Time{}, time.Time{}, nil
	rec.readable(now)
	rec.Exists, rec.Ready, rec.Reporting = false, ReadyUnknown, false
	if rec.NotReady.IsZero() {
		rec.NotReady, rec.SawFail = now, wasReady
	}
	t.Volumes = append(t.Volumes, l.touchable(rec)...)
	l.wakeTaken(t, e.Name)
	t.node(e.Name)
	for _, v := range rec.At() {
		if p := l.facts.volumes.get(v).OnNode(e.Name); p.Reported && v.NoAttach() { // the machine may have it by this alone
			l.changeVolumeOnNode(now, t, v, e.Name, func(p *VolumeOnNode) { p.Reported, p.ReportSent = false, true })
		}
	}
	l.abandon(now, t, rec, false)
	l.unlist(now, t, e.Name, nil, func(n *Node) int { return n.reported }, func(p *VolumeOnNode) *bool { return &p.Reported })
	l.recount(now, t, rec)
}

// cloneGone notes that a node lost its systemUUID: for its last node a boot may be over.
func (l *Ledger) cloneGone(now time.Time, t *Touched, machine string) {
	if machine == "" {
		return
	}
	var names []NodeName
	for n := range l.facts.nodes.all() {
		if n.Exists && n.SystemUUID == machine && l.facts.onlyOne(n) {
			names = append(names, n.Name)
		}
	}
	for _, name := range names {
		state := l.facts.nodes.get(name).NodeState
		l.seeBoot(now, t, &state, &state)
		t.Volumes = append(t.Volumes, l.facts.nodes.get(name).At()...)
	}
}

// dropFenced ends the use of volumes detached on evidence that nothing runs, if the kubelet has not
// reported since. Only that kubelet's list names them, and after the Node's deletion nobody can write
// another.
func (l *Ledger) dropFenced(now time.Time, t *Touched, n *Node) {
	if !n.OutOfService || n.Ready != ReadyUnknown || n.Heard.After(n.OutOfServiceAt) {
		return
	}
	for _, v := range n.At() {
		if p := l.facts.volumes.get(v).OnNode(n.Name); !p.HasAttachments() && !v.NoAttach() {
			l.changeVolumeOnNode(now, t, v, n.Name, func(p *VolumeOnNode) { p.InUse = false; p.setUnknown(nil) })
		}
	}
}

func (d NodeDrivers) apply(l *Ledger, now time.Time, t *Touched) {
	old := l.facts.nodes.get(d.Node)
	if old != nil && old.CSINode && !Newer(d.Version, old.CSIRev) {
		return
	}
	rec := l.node(d.Node)
	rec.CSINode, rec.CSIRev = true, d.Version
	for i := range rec.Drivers {
		rec.Drivers[i].Registered = false
	}
	names := make([]string, 0, len(d.Drivers))
	for _, driver := range d.Drivers {
		names = append(names, driver.Name)
	}
	rec.ownDrivers(names)
	for _, driver := range d.Drivers {
		own := rec.ownDriver(driver.Name)
		own.DriverOnNode, own.Registered, own.Exhausted = driver, true, false
		own.to = &machine{node: rec.Name, driver: own.Name, nodeID: driver.NodeID}
	}
	rec.sweepDrivers()
	for _, driver := range d.Drivers {
		l.learnDriver(now, t, driver.Name)
	}
	t.node(d.Node)
	t.Volumes = append(t.Volumes, l.touchable(rec)...)
}

func (e NodeDriversGone) apply(l *Ledger, now time.Time, t *Touched) {
	if old := l.facts.nodes.get(e.Node); old == nil || !old.CSINode {
		return
	}
	rec := l.node(e.Node)
	rec.CSINode, rec.CSIRev = false, ""
	for i := range rec.Drivers {
		rec.Drivers[i].Registered = false
	}
	rec.sweepDrivers()
	t.node(e.Node)
	t.Volumes = append(t.Volumes, l.touchable(rec)...)
	l.sweepNode(rec)
	if !rec.Exists {
		l.cloneGone(now, t, rec.SystemUUID)
	}
}

func (e HoldSeen) apply(l *Ledger, now time.Time, t *Touched) {
	old := l.facts.volumes.get(e.Volume)
	if old != nil && old.Hold != nil && !Newer(e.Hold.Version, old.Hold.Version) {
		return
	}
	hold := e.Hold
	l.seeToken(hold.Transitions)
	rec := l.volume(e.Volume)
	doubted := rec.HoldUnanswered > 0
	rec.HoldUnanswered = 0
	if rec.Hold.saysTheSame(&hold) {
		// A grant wrote this version. It wakes no ticket: a refused grant is retried after a pause.
		rec.Hold = &hold
		if doubted {
			t.volume(e.Volume)
		}
		return
	}
	if rec.Hold == nil {
		rec.earlier = nil
		if hold.Force != nil {
			rec.earlier = &earlier{*hold.Force, now}
		}
	}
	was := rec.Hold
	rec.Hold = &hold
	t.volume(e.Volume)
	l.moveLeft(now, t, e.Volume, was.left(), hold.left())
	l.moveHeld(now, t, e.Volume, was.held(e.Volume), hold.held(e.Volume))
	if n := hold.held(e.Volume); n != "" && n == was.held(e.Volume) && was.SystemUUID != hold.SystemUUID {
		l.trust(now, t, n, e.Volume) // another machine of the name has it
	}
	l.noteHold(now, t, e.Volume, was.node(), hold.Node)
	l.listPods(now, t, e.Volume, was, &hold)
}

// saysTheSame ignores versions and the count of writes.
func (h *Hold) saysTheSame(is *Hold) bool {
	switch {
	case h == nil || h.Version == "":
		return false
	case h.Node != is.Node || h.NodeUID != is.NodeUID || h.BootID != is.BootID || h.SystemUUID != is.SystemUUID,
		h.Next != is.Next || h.Transitions != is.Transitions || h.State != is.State || h.Stays != is.Stays,
		h.Reason != is.Reason || h.Message != is.Message:
		return false
	case (h.Force == nil) != (is.Force == nil) || h.Force != nil && *h.Force != *is.Force:
		return false
	}
	return slices.Equal(h.Requesters, is.Requesters) && slices.Equal(h.Waiting, is.Waiting) && slices.Equal(h.PVs, is.PVs) && slices.Equal(h.Fences, is.Fences)
}

func (e HoldUnanswered) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	switch v := l.facts.volumes.get(e.Volume); {
	case v == nil:
	case e.Deletes && v.Hold != nil && v.Hold.Version == "":
		l.removeHold(now, t, l.volume(e.Volume)) // the watch came first, as for HoldDropped
	case v.Hold.version() == e.Version:
		rec := l.volume(e.Volume)
		rec.HoldUnanswered = max(1, rec.HoldUnanswered+1)
		if e.Deletes {
			rec.dropped = e.Version
		}
		t.volume(e.Volume) // write it again, even after a grant
	}
}

func (e HoldAnswered) apply(l *Ledger, _ time.Time, t *Touched) {
	t.Own = true
	if v := l.facts.volumes.get(e.Volume); v != nil && v.HoldUnanswered > 0 && v.HoldUnanswered == e.Writes {
		rec := l.volume(e.Volume)
		rec.HoldUnanswered, rec.dropped = 0, "" // a deletion failed for good
		t.volume(e.Volume)
	}
}

func (e HoldBoots) apply(l *Ledger, _ time.Time, t *Touched) {
	t.Own, l.facts.dropsHoldBoots = true, e.Dropped
}

func (e HoldDropped) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	if old := l.facts.volumes.get(e.Volume); old == nil || old.Hold == nil {
		return
	}
	rec := l.volume(e.Volume)
	rec.dropped = e.Version
	if rec.Hold.Version == e.Version {
		rec.HoldUnanswered = 0
		t.volume(e.Volume)
	}
	if rec.Hold.Version == "" { // the watch came first, without the deleter
		l.removeHold(now, t, rec)
	}
}

// A hold is kept as unwritten (Version is empty) if it alone places a volume with a PersistentVolume, or
// names nodes of possible mounts after a forced detach. Without a PersistentVolume it alone has the
// volume's access, and is kept while the volume is seen at its node. Otherwise the deletion says that the
// volume is nowhere, even if it was left at a machine that lost its name. This process deletes holds
// without content.
func (e HoldGone) apply(l *Ledger, now time.Time, t *Touched) {
	if old := l.facts.volumes.get(e.Volume); old == nil || old.Hold == nil {
		return
	}
	rec := l.volume(e.Volume)
	if l.reads {
		l.removeHold(now, t, rec)
		return
	}
	rec.HoldUnanswered = 0
	was := rec.Hold
	dropped := rec.dropped != "" && was.Version == rec.dropped
	if !dropped { // its own facts are still true
		for i := range rec.OnNodes {
			if rec.OnNodes[i].Proof.Again {
				continue // deleted because moorage-node has found nothing
			}
			for _, b := range l.facts.unknown(rec, &rec.OnNodes[i]) {
				l.makeUnknown(now, t, e.Volume, rec.OnNodes[i].Node, b)
			}
		}
	}
	n := l.facts.nodes.get(was.Node)
	if !dropped && was.Version != "" && was.LeftAtAnother(n) && len(rec.PVs()) > 0 {
		l.leftNoMore(now, t, rec)
		return
	}
	needed := was.left() != "" || was.held(e.Volume) != "" || len(was.Fences) > 0
	if len(rec.PVs()) == 0 {
		needed = rec.OnNode(was.Node).seen()
	}
	if dropped || !needed {
		l.removeHold(now, t, rec)
		return
	}
	if was.Version == "" {
		return // told again
	}
	// The deletion moved no volume: write the content again.
	unwritten := *was
	unwritten.Version = ""
	rec.Hold = &unwritten
	t.volume(e.Volume)
}

// leftNoMore: a person's deletion says that the volume is no longer at the machine that lost its name. The
// rest is written again: its transitions, which never fall, and other machines.
func (l *Ledger) leftNoMore(now time.Time, t *Touched, rec *Volume) {
	v, was := rec.ID, rec.Hold
	rest := Hold{Transitions: was.Transitions, Grants: was.Grants, PVs: was.PVs, Next: was.Next}
	for _, f := range was.Fences {
		if f.Node != was.Node || f.SystemUUID != was.SystemUUID {
			rest.Fences = append(rest.Fences, f)
		}
	}
	rec.Hold = &rest
	t.volume(v)
	l.moveLeft(now, t, v, was.Node, "")
	l.changeVolumeOnNode(now, t, v, was.Node, func(p *VolumeOnNode) {
		p.setUnknown(slices.DeleteFunc(slices.Clone(p.SawUnknown()), func(b Boot) bool { return b.SystemUUID == was.SystemUUID }))
	})
	l.noteHold(now, t, v, was.Node, "")
	l.listPods(now, t, v, was, &rest)
}

// seen: more than a hold shows that the volume may be here.
func (p *VolumeOnNode) seen() bool {
	return p != nil && (p.HasAttachments() || p.Sent || p.Reported || p.MayBeInUse())
}

// removeHold needs an owned record.
func (l *Ledger) removeHold(now time.Time, t *Touched, rec *Volume) {
	v, was := rec.ID, rec.Hold
	rec.Hold = nil
	t.volume(v)
	l.listPods(now, t, v, was, nil)
	l.moveLeft(now, t, v, was.left(), "")
	l.moveHeld(now, t, v, was.held(v), "")
	l.noteHold(now, t, v, was.node(), "")
	l.sweep(rec)
}

// version is empty for an unwritten hold.
func (h *Hold) version() string {
	if h == nil {
		return ""
	}
	return h.Version
}

// node is the node that has the volume; empty: none.
func (h *Hold) node() NodeName {
	if h == nil {
		return ""
	}
	return h.Node
}

// left is a hold's node of a leftover, or empty.
func (h *Hold) left() NodeName {
	if h == nil || !h.Stays {
		return ""
	}
	return h.Node
}

// LeftAtAnother: the volume was left at a machine that lost its node's name. Attaches and detaches at the
// new machine show nothing about the first.
func (h *Hold) LeftAtAnother(n *Node) bool {
	return h != nil && h.Stays && n != nil && n.Name == h.Node && h.SystemUUID != "" && n.SystemUUID != "" && n.SystemUUID != h.SystemUUID
}

// moveLeft marks the place where a volume may have been left.
func (l *Ledger) moveLeft(now time.Time, t *Touched, v VolumeID, was, is NodeName) {
	if was == is {
		return
	}
	l.changeVolumeOnNode(now, t, v, is, func(p *VolumeOnNode) { p.Left = true })
	l.changeVolumeOnNode(now, t, v, was, func(p *VolumeOnNode) {
		if p.Left = false; !p.MayBeMounted() {
			p.setUnknown(nil)
		}
	})
}

// held is a hold's node for a volume without attachments, or empty.
func (h *Hold) held(v VolumeID) NodeName {
	if !v.NoAttach() || h.node() == Detached {
		return ""
	}
	return h.node()
}

// moveHeld marks the hold's node for a volume without attachments. At its former node the volume is no
// longer unknown.
func (l *Ledger) moveHeld(now time.Time, t *Touched, v VolumeID, was, is NodeName) {
	if was == is {
		return
	}
	l.changeVolumeOnNode(now, t, v, is, func(p *VolumeOnNode) { p.Held = true })
	if was != "" {
		l.trust(now, t, was, v)
	}
	l.changeVolumeOnNode(now, t, v, was, func(p *VolumeOnNode) { p.Held = false })
}

func (e Unreported) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	n := l.facts.nodes.get(e.Node)
	if !l.prove(now, t, e.Volume, e.Node, ProofUnreported, e.UID, e.Version) {
		return
	}
	unknown := l.facts.unknown(l.facts.volumes.get(e.Volume), l.facts.volumes.get(e.Volume).OnNode(e.Node)) != nil
	l.changeVolumeOnNode(now, t, e.Volume, e.Node, func(p *VolumeOnNode) {
		p.Proof.Forced, p.Unlisted = e.Forced, p.Unlisted && !e.Ready
		p.Reported, p.ReportSent = false, p.ReportSent && e.Unknown
		switch {
		case n == nil || !n.Exists: // a deleted node can't revoke its list
			p.InUse = false
			if !p.HasAttachments() {
				p.setUnknown(nil)
			}
		case e.Forced && p.InUse && !unknown:
			p.setUnknown([]Boot{n.Boot()})
		case !e.Forced && !e.Unknown:
			p.InUse = false
			p.setUnknown(nil)
		}
		if !p.MayBeMounted() {
			p.setUnknown(nil)
		}
	})
}

func (e ReadyShown) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	if v := l.facts.volumes.get(e.Volume); v.OnNode(e.Node) != nil {
		l.changeVolumeOnNode(now, t, e.Volume, e.Node, func(p *VolumeOnNode) { p.Unlisted = false })
	}
}

func (e Unwanted) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	l.prove(now, t, e.Volume, e.Node, ProofUnwanted, e.UID, e.Version)
}

func (e ReportSent) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	p := l.facts.volumes.get(e.Volume).OnNode(e.Node)
	if e.Volume.NoAttach() && (p == nil || !p.ReportSent) || p != nil && p.Proof != (Proof{}) {
		l.changeVolumeOnNode(now, t, e.Volume, e.Node, func(p *VolumeOnNode) { p.Proof, p.ReportSent = Proof{}, e.Volume.NoAttach() })
	}
}

func (e UnreportSent) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	l.unreportSent(now, t, e.Volume, e.Node, true)
}

func (e UnreportResolved) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	l.unreportSent(now, t, e.Volume, e.Node, false)
}

// unreportSent notes whether a volume that needs no attachment may be leaving volumesAttached.
func (l *Ledger) unreportSent(now time.Time, t *Touched, v VolumeID, n NodeName, is bool) {
	if p := l.facts.volumes.get(v).OnNode(n); p != nil && v.NoAttach() && p.UnreportSent != is {
		l.changeVolumeOnNode(now, t, v, n, func(p *VolumeOnNode) { p.UnreportSent = is })
	}
}

func (e NotReported) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	if p := l.facts.volumes.get(e.Volume).OnNode(e.Node); p != nil && p.ReportSent {
		l.changeVolumeOnNode(now, t, e.Volume, e.Node, func(p *VolumeOnNode) { p.ReportSent = false })
	}
}

// provable: the own attachment is unchanged since the proof's begin.
func (p *VolumeOnNode) provable(uid, version string) bool {
	own, at := "", ""
	if p.HasOwn() {
		own, at = p.first.uidText(), p.first.versionText()
	}
	return own == uid && at == version
}

// prove records a proof for an unchanged place. It never skips a stage.
func (l *Ledger) prove(now time.Time, t *Touched, v VolumeID, n NodeName, stage ProofStage, uid, version string) bool {
	p := l.facts.volumes.get(v).OnNode(n)
	if p == nil || !p.provable(uid, version) || stage == ProofUnwanted && p.Proof.Stage != ProofUnreported {
		return false
	}
	l.changeVolumeOnNode(now, t, v, n, func(p *VolumeOnNode) {
		p.Proof.Stage = stage
		if r := p.first; p.HasOwn() && !r.proved {
			l.amend(p, r, func(r *attachmentRecord) { r.proved = true })
		}
	})
	return true
}
