// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"time"
)

func (p Pod) apply(l *Ledger, now time.Time, t *Touched) {
	old := l.facts.pods.get(p.UID)
	p.Reserved, p.unseen = false, false
	if old != nil {
		if !Newer(p.Version, old.Version) {
			if old.unseen && old.Version == p.Version {
				seen := *old
				seen.unseen = false
				l.facts.pods.put(l.gen, p.UID, &seen)
			}
			return
		}
		if old.Reserved && p.Node == "" {
			p.Node, p.Reserved = old.Node, true
		}
	}
	l.putPod(now, t, old, p)
}

// putPod replaces a pod's state old; nil: new.
func (l *Ledger) putPod(now time.Time, t *Touched, old *Pod, p Pod) {
	p.at = nil
	if old != nil {
		l.unlinkPod(old)
		if old.Node == p.Node && slices.Equal(old.Volumes, p.Volumes) {
			p.at = old.at
		}
	}
	p.inline = inlineOf(p.Volumes)
	if old != nil && (old.Node != p.Node || p.Phase == PodFinished) {
		l.doubtIdle(now, t, old)
	}
	l.facts.pods.put(l.gen, p.UID, &p)
	l.linkPod(&p)
	l.updatePodVolumes(now, t, p.UID)
	if old != nil && len(old.at) > 0 && p.at == nil {
		l.vacate(now, t, User{Pod: p.UID}, old.Node, old.at, p.Node, l.facts.pods.get(p.UID).at)
	}
	for _, v := range p.at {
		t.volume(v) // its phase may have changed
	}
	if len(p.Volumes) > 0 {
		t.pod(p.UID) // they may lead nowhere
	}
	if old == nil && len(p.OwnCSI) > 0 {
		l.resolveUnreadAgain(now, t, func(u *Unread) bool { return u.Pod == p.UID })
	}
}

func (e PodGone) apply(l *Ledger, now time.Time, t *Touched) {
	old := l.facts.pods.get(e.UID)
	if old == nil {
		return
	}
	l.doubtIdle(now, t, old)
	l.unlinkPod(old)
	l.leavePod(now, t, old)
	l.facts.pods.del(l.gen, e.UID)
}

func (l *Ledger) linkPod(p *Pod) {
	for _, v := range p.Volumes {
		if v.Claim != "" {
			rec := l.claim(ClaimKey{p.Namespace, v.Claim})
			rec.pods = add(rec.pods, p.UID)
		}
	}
}

func (l *Ledger) unlinkPod(p *Pod) {
	for _, v := range p.Volumes {
		if v.Claim != "" {
			rec := l.claim(ClaimKey{p.Namespace, v.Claim})
			rec.pods = drop(rec.pods, p.UID)
			l.sweepClaim(rec)
		}
	}
}

// updatePodVolumes makes the pod a user of exactly the VolumeOnNodes its volumes lead to.
func (l *Ledger) updatePodVolumes(now time.Time, t *Touched, uid string) {
	p := l.facts.pods.get(uid)
	if p == nil {
		return
	}
	at := l.podVolumesOnNode(p)
	if slices.Equal(at, p.at) {
		return
	}
	l.setPodVolumesOnNode(now, t, p, at)
}

func (l *Ledger) setPodVolumesOnNode(now time.Time, t *Touched, p *Pod, at []VolumeID) {
	l.moveUser(now, t, User{Pod: p.UID}, p.Node, p.at, at)
	moved := *p
	moved.at = at
	l.facts.pods.put(l.gen, p.UID, &moved)
}

// podVolumesOnNode lists a pod's volumes by reference, zero if it leads nowhere; then, sorted, other
// possible volumes.
func (l *Ledger) podVolumesOnNode(p *Pod) []VolumeID {
	if p.Node == "" || p.Phase == PodFinished || len(p.Volumes) == 0 {
		return nil
	}
	at := make([]VolumeID, len(p.Volumes), max(len(p.Volumes), len(p.at)))
	var more []VolumeID
	for i, v := range p.Volumes {
		id, link := l.facts.resolvePod(p, v)
		at[i] = resolveOnce(id, link, before(p.at, i))
		if at[i].IsZero() && (link == LinkUnseen || link == LinkLost) {
			more = append(more, l.attachedAs(l.facts.claims.get(ClaimKey{p.Namespace, v.Claim}).PersistentVolume, p.Node)...)
		}
	}
	at = keep(keep(keep(at, p.at), more), l.heldFor(p))
	slices.SortFunc(at[len(p.Volumes):], VolumeID.Compare)
	return at
}

// keep adds the real volumes that at lacks. A pod uses its volumes to its end: a claim made again leads to
// another disk, not mounted by the pod.
func keep(at, was []VolumeID) []VolumeID {
	has := setOf(at)
	for _, v := range was {
		if v.IsReal() && !has.has(v) {
			at = append(at, v)
			has.add(v)
		}
	}
	return at
}

// attachedAs are a node's volumes with attachments for a deleted PersistentVolume, perhaps used by claim.
// Before everything is seen the PersistentVolume may still come.
func (l *Ledger) attachedAs(pv string, n NodeName) []VolumeID {
	rec := l.facts.pvs.get(pv)
	if rec == nil || rec.exists || l.facts.complete.IsZero() {
		return nil
	}
	var list []VolumeID
	for _, name := range rec.attachments {
		if a := l.facts.attachments.get(name); a.to.node == n && a.at().IsReal() {
			list = append(list, a.at())
		}
	}
	for _, v := range rec.outlived { // this process saw it name them
		if l.facts.volumes.get(v).OnNode(n).attachedFor(pv) {
			list = append(list, v)
		}
	}
	return list
}

// heldFor are volumes whose hold or attachment names a pod: its claims led there. A newer process has no
// other source if a claim or PersistentVolume is gone or replaced.
func (l *Ledger) heldFor(p *Pod) []VolumeID {
	rec := l.facts.listed.get(p.UID)
	if rec == nil {
		return nil
	}
	var list []VolumeID
	for _, v := range rec.volumes {
		if rec := l.facts.volumes.get(v); rec.Hold.node() == p.Node || rec.Hold.waits(p.UID) || rec.madeFor(p.UID, p.Node) {
			list = append(list, v)
		}
	}
	return list
}

// listed are the volumes with holds or notes that list a pod, seen or not.
type listed struct {
	pod     string // its UID
	volumes []VolumeID
}

func (l *Ledger) listPods(now time.Time, t *Touched, v VolumeID, was, is *Hold) {
	before, after := was.pods(), is.pods()
	for _, uid := range before {
		if _, still := slices.BinarySearch(after, uid); !still {
			l.listPod(uid, v)
		}
	}
	for _, uid := range after {
		if _, known := slices.BinarySearch(before, uid); !known {
			l.listPod(uid, v)
		} else if was.node() == is.node() {
			continue
		}
		l.updatePodVolumes(now, t, uid)
	}
}

// listPod says whether listing a pod's volume is a change.
func (l *Ledger) listPod(uid string, v VolumeID) (changed bool) {
	rec := listed{pod: uid}
	if old := l.facts.listed.get(uid); old != nil {
		rec.volumes = old.volumes
	}
	is := l.facts.volumes.get(v).lists(uid)
	if slices.Contains(rec.volumes, v) == is {
		return false
	}
	if is {
		rec.volumes = add(rec.volumes, v)
	} else {
		rec.volumes = drop(rec.volumes, v)
	}
	if len(rec.volumes) == 0 {
		l.facts.listed.del(l.gen, uid)
	} else {
		l.facts.listed.put(l.gen, uid, &rec)
	}
	return true
}

// lists says whether the volume's hold, or the note of an attachment, names a pod.
func (v *Volume) lists(pod string) bool {
	if v == nil {
		return false
	}
	if _, held := slices.BinarySearch(v.Hold.pods(), pod); held {
		return true
	}
	return slices.ContainsFunc(v.OnNodes, func(p VolumeOnNode) bool { return p.first.noted() && p.first.pod == pod })
}

// pods lists, sorted by UID, the pods that a hold names as users or waiters.
func (h *Hold) pods() []string {
	var list []string
	if h != nil {
		for _, who := range [][]Requester{h.Requesters, {h.Next.To}, h.Waiting} {
			for _, r := range who {
				if !r.Ticket && r.UID != "" {
					list = append(list, r.UID)
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// waits says whether a hold names a pod as waiting for the volume, or as next.
func (h *Hold) waits(pod string) bool {
	is := func(r Requester) bool { return !r.Ticket && r.UID == pod }
	return h != nil && (is(h.Next.To) || slices.ContainsFunc(h.Waiting, is))
}

// before is the former i-th volume; zero: new.
func before(at []VolumeID, i int) VolumeID {
	if i < len(at) {
		return at[i]
	}
	return VolumeID{}
}

func (l *Ledger) leavePod(now time.Time, t *Touched, p *Pod) {
	l.moveUser(now, t, User{Pod: p.UID}, p.Node, p.at, nil)
}

// doubtIdle restarts a node's idle times when a pod with unknown uses ends: its claim may yet lead to any
// volume.
func (l *Ledger) doubtIdle(now time.Time, t *Touched, p *Pod) {
	n := l.facts.nodes.get(p.Node)
	if n == nil || p.Phase == PodFinished || !l.usesUnknown(p) {
		return
	}
	for _, v := range n.At() {
		if l.facts.volumes.get(v).OnNode(p.Node).idle != busy {
			l.changeVolumeOnNode(now, t, v, p.Node, func(place *VolumeOnNode) { place.idle, place.SawLeave = now.Sub(l.facts.epoch), true })
		}
	}
}

// usesUnknown says whether a pod's volume may lead to an unknown one.
func (l *Ledger) usesUnknown(p *Pod) bool {
	for i, v := range p.Volumes {
		if at := before(p.at, i); !at.IsReal() {
			if _, link := l.facts.resolvePod(p, v); link != LinkNone {
				return true
			}
		}
	}
	return false
}

// vacate ends a user's uses at its former node, except the uses that it keeps.
func (l *Ledger) vacate(now time.Time, t *Touched, u User, from NodeName, was []VolumeID, to NodeName, is []VolumeID) {
	if from != to {
		is = nil
	}
	l.moveUser(now, t, u, from, was, is)
}

// moveUser replaces u's volumes was by is.
func (l *Ledger) moveUser(now time.Time, t *Touched, u User, n NodeName, was, is []VolumeID) {
	if n != "" && len(was)+len(is) > fewVolumes {
		defer l.beginBulk(n, is)()
	}
	had, has := setOf(was), setOf(is)
	for _, v := range is {
		if !had.has(v) {
			l.changeVolumeOnNode(now, t, v, n, func(p *VolumeOnNode) {
				p.Users = add(p.Users, u)
				p.Proof = Proof{} // it said that no user wants the volume
			})
			l.inlineChanged(t, v)
		}
	}
	for _, v := range was {
		if !has.has(v) {
			l.changeVolumeOnNode(now, t, v, n, func(p *VolumeOnNode) { p.Users = drop(p.Users, u) })
			l.inlineChanged(t, v)
		}
	}
}

func (k Ticket) apply(l *Ledger, now time.Time, t *Touched) {
	if k.Type == typeOfPods {
		TicketGone{ID: k.ID}.apply(l, now, t)
		t.ticket(k.ID) // the controller deletes it
		return
	}
	if uid, ok := l.buried[k.ID]; ok {
		if uid == k.UID {
			return
		}
		delete(l.buried, k.ID)
	}
	old := l.facts.tickets.get(k.ID)
	k.InDoubt, k.Granting, k.at = false, false, nil
	if old != nil {
		if !Newer(k.Version, old.Version) {
			return
		}
		l.unlinkTicket(old)
		if old.UID == k.UID && old.Node == k.Node && slices.Equal(old.Volumes, k.Volumes) {
			k.at = old.at
		} else {
			l.queueTicket(t, old, false)
		}
	}
	if k.interrupted = now.Sub(l.facts.epoch); old != nil && old.UID == k.UID && old.Interruptions == k.Interruptions {
		k.interrupted = old.interrupted
	}
	k.readOutage(old, now)
	l.facts.tickets.put(l.gen, k.ID, &k)
	l.linkTicket(&k)
	l.updateTicketVolumes(now, t, k.ID)
	if old != nil && len(old.at) > 0 && k.at == nil {
		l.vacate(now, t, User{Ticket: k.ID}, old.Node, old.at, k.Node, l.facts.tickets.get(k.ID).at)
	}
	l.queueTicket(t, &k, k.Phase == TicketPending)
	l.phaseChanged(now, t, k.ID)
	t.ticket(k.ID)
}

func (e TicketInDoubt) apply(l *Ledger, now time.Time, t *Touched) {
	old := l.facts.tickets.get(e.ID)
	if old == nil || old.UID != e.UID || old.Phase != TicketPending || old.InDoubt {
		return
	}
	doubted := *old
	doubted.InDoubt, doubted.Granting = true, false
	l.facts.tickets.put(l.gen, e.ID, &doubted)
	l.phaseChanged(now, t, e.ID)
	t.ticket(e.ID)
}

// phaseChanged checks a ticket's places again: idleness depends on its phase.
func (l *Ledger) phaseChanged(now time.Time, t *Touched, id TicketID) {
	k := l.facts.tickets.get(id)
	for _, v := range k.at {
		l.changeVolumeOnNode(now, t, v, k.Node, func(*VolumeOnNode) {})
	}
}

func (e TicketGone) apply(l *Ledger, now time.Time, t *Touched) {
	if uid, ok := l.buried[e.ID]; ok && (e.UID == "" || e.UID == uid) {
		delete(l.buried, e.ID)
		return // deletion known; a new ticket may have the name
	}
	old := l.facts.tickets.get(e.ID)
	if old == nil || e.UID != "" && e.UID != old.UID {
		return
	}
	l.removeTicket(now, t, old)
}

func (e TicketReleased) apply(l *Ledger, now time.Time, t *Touched) {
	old := l.facts.tickets.get(e.ID)
	if old == nil || e.UID != "" && e.UID != old.UID {
		return
	}
	if old.UID != "" {
		l.buried[e.ID] = old.UID
	}
	l.removeTicket(now, t, old)
}

func (l *Ledger) removeTicket(now time.Time, t *Touched, k *Ticket) {
	l.unlinkTicket(k)
	l.moveUser(now, t, User{Ticket: k.ID}, k.Node, k.at, nil)
	l.queueTicket(t, k, false)
	l.facts.tickets.del(l.gen, k.ID)
	t.ticket(k.ID)
}

// queueTicket updates the node's list of pending tickets.
func (l *Ledger) queueTicket(t *Touched, k *Ticket, pending bool) {
	n := l.facts.nodes.get(k.Node)
	if k.Node == "" || n != nil && slices.Contains(n.Tickets, k.ID) == pending || n == nil && !pending {
		return
	}
	rec := l.node(k.Node)
	if pending {
		rec.Tickets = add(rec.Tickets, k.ID)
	} else {
		rec.Tickets = drop(rec.Tickets, k.ID)
		l.sweepNode(rec)
	}
	t.node(k.Node)
}

// updateTicketVolumes keeps granted volumes until the ticket's own status says that it lost them.
func (l *Ledger) updateTicketVolumes(now time.Time, t *Touched, id TicketID) {
	k := l.facts.tickets.get(id)
	if k == nil {
		return
	}
	at := l.ticketVolumesOnNode(k)
	if had := k.granted(); lacksAny(at, had) {
		at = had
	}
	if slices.Equal(at, k.at) {
		return
	}
	l.moveUser(now, t, User{Ticket: id}, k.Node, k.at, at)
	moved := *k
	moved.at = at
	l.facts.tickets.put(l.gen, id, &moved)
	t.ticket(id)
}

// granted are a granted ticket's volumes by its status, or as seen (earlier releases). Its user relies on
// them, so that no other claimant may have them. nil: its spec's.
func (k *Ticket) granted() []VolumeID {
	if k.Phase != TicketGranted || k.Node == "" {
		return nil
	}
	had := make([]VolumeID, len(k.Volumes))
	for i := range had {
		if had[i] = before(k.Granted, i); !had[i].IsReal() {
			had[i] = before(k.at, i)
		}
	}
	return had
}

// lacksAny says whether a former volume is missing in its place.
func lacksAny(is, was []VolumeID) bool {
	for i, v := range was {
		if v.IsReal() && before(is, i) != v {
			return true
		}
	}
	return false
}

// ticketVolumesOnNode has zero for a dead reference. An unbound claim takes no slot: it is free, and
// tickets could fill every node.
func (l *Ledger) ticketVolumesOnNode(k *Ticket) []VolumeID {
	if len(k.Volumes) == 0 || k.Node == "" {
		return nil
	}
	at := make([]VolumeID, len(k.Volumes))
	for i, v := range k.Volumes {
		if id, _ := l.facts.resolveTicket(k, v); id.IsReal() {
			at[i] = id
		}
	}
	return at
}

func (l *Ledger) linkTicket(k *Ticket) {
	for _, v := range k.Volumes {
		switch {
		case v.Claim != "":
			rec := l.claim(ClaimKey{k.ID.Namespace, v.Claim})
			rec.tickets = add(rec.tickets, k.ID)
		case v.PersistentVolume != "":
			rec := l.pv(v.PersistentVolume)
			rec.tickets = add(rec.tickets, k.ID)
		}
	}
}

func (l *Ledger) unlinkTicket(k *Ticket) {
	for _, v := range k.Volumes {
		switch {
		case v.Claim != "":
			rec := l.claim(ClaimKey{k.ID.Namespace, v.Claim})
			rec.tickets = drop(rec.tickets, k.ID)
			l.sweepClaim(rec)
		case v.PersistentVolume != "":
			rec := l.pv(v.PersistentVolume)
			rec.tickets = drop(rec.tickets, k.ID)
			l.sweepPV(rec)
		}
	}
}
