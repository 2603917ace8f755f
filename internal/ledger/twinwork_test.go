// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"time"
)

func (w *twin) work(now time.Time) {
	for uid, p := range w.pods {
		was := w.podAt[uid]
		w.podAt[uid] = w.whereTo(len(p.Volumes), p.Node != "" && p.Phase != PodFinished, was, func(i int, was VolumeID) VolumeID {
			id, link := w.resolvePod(p, p.Volumes[i])
			return keepReal(id, link, was)
		})
		if w.podAt[uid] == nil {
			continue
		}
		for v, h := range w.holds {
			names := func(r Requester) bool { return !r.Ticket && r.UID == uid }
			if h.Node == p.Node && slices.ContainsFunc(h.Requesters, names) || names(h.Next.To) || slices.ContainsFunc(h.Waiting, names) {
				was = append(slices.Clip(was), v)
			}
		}
		for _, v := range was { // its volumes at its start, and in holds
			if v.IsReal() && !slices.Contains(w.podAt[uid], v) {
				w.podAt[uid] = append(w.podAt[uid], v)
			}
		}
		slices.SortFunc(w.podAt[uid][len(p.Volumes):], VolumeID.Compare)
	}
	for id, t := range w.tickets {
		had := w.ticketAt[id]
		w.ticketAt[id] = w.whereTo(len(t.Volumes), true, w.ticketAt[id], func(i int, _ VolumeID) VolumeID {
			vol, _ := w.resolveTicket(t, t.Volumes[i])
			if !vol.IsReal() {
				return VolumeID{} // it has no slot before there is a volume
			}
			return vol
		})
		w.keepGranted(id, had)
	}
	for name, a := range w.attachments {
		w.vaAt[name] = w.source(a, w.vaAt[name])
	}
	w.match()
	w.workPlaces(now)
	w.workAccess()
	w.workNodes(now)
}

// A granted ticket that lost a volume keeps the rest.
func (w *twin) keepGranted(id TicketID, had []VolumeID) {
	if t := w.tickets[id]; t.Phase != TicketGranted || t.Node == "" {
		return
	}
	t, lost := w.tickets[id], false
	kept := make([]VolumeID, len(t.Volumes))
	for i := range kept {
		if kept[i] = before(t.Granted, i); !kept[i].IsReal() {
			kept[i] = before(had, i)
		}
		lost = lost || kept[i].IsReal() && before(w.ticketAt[id], i) != kept[i]
	}
	if lost {
		w.ticketAt[id] = kept
	}
}

func (w *twin) whereTo(n int, counts bool, was []VolumeID, lead func(int, VolumeID) VolumeID) []VolumeID {
	if !counts || n == 0 {
		return nil
	}
	at := make([]VolumeID, n)
	for i := range at {
		at[i] = lead(i, before(was, i))
	}
	return at
}

// Missing evidence frees nothing.
func keepReal(id VolumeID, link Link, was VolumeID) VolumeID {
	switch {
	case link == LinkNone || link == LinkVolume:
		return id
	case was.IsReal():
		return was
	case !id.IsZero():
		return id
	case link == LinkUnbound || link == LinkUnseen:
		return was
	}
	return VolumeID{}
}

func (w *twin) resolvePod(p Pod, v PodVolume) (VolumeID, Link) {
	if v.Claim == "" {
		if v.Inline.IsZero() {
			return VolumeID{}, LinkNone
		}
		return v.Inline, LinkVolume
	}
	c, ok := w.claims[ClaimKey{p.Namespace, v.Claim}]
	if ok && v.Ephemeral && c.OwnerPod != p.UID {
		return VolumeID{}, LinkMissing
	}
	return w.resolveClaim(c, ok)
}

func (w *twin) resolveTicket(t Ticket, v TicketVolume) (VolumeID, Link) {
	switch {
	case v.Claim != "":
		c, ok := w.claims[ClaimKey{t.ID.Namespace, v.Claim}]
		return w.resolveClaim(c, ok && (v.ClaimUID == "" || v.ClaimUID == c.UID))
	case v.PersistentVolume != "":
		return w.resolvePV(v.PersistentVolume)
	}
	return VolumeID{}, LinkMissing
}

func (w *twin) resolveClaim(c Claim, ok bool) (VolumeID, Link) {
	switch {
	case !ok:
		return VolumeID{}, LinkMissing
	case c.Lost:
		return VolumeID{}, LinkLost
	case c.Bound && c.PersistentVolume != "":
		return w.resolvePV(c.PersistentVolume)
	case w.classes[c.Class].Driver == "":
		return VolumeID{}, LinkUnbound
	case !w.csi[w.classes[c.Class].Driver]:
		return VolumeID{}, LinkOutside
	}
	return UnboundClaim(w.classes[c.Class].Driver, c.UID), LinkUnbound
}

func (w *twin) resolvePV(name string) (VolumeID, Link) {
	pv, ok := w.pvs[name]
	switch {
	case !ok:
		return VolumeID{}, LinkUnseen
	case pv.Volume.IsZero():
		return VolumeID{}, LinkNone
	}
	return pv.Volume, LinkVolume
}

// Without its PersistentVolume: its former volume, or a placeholder.
func (w *twin) source(a Attachment, was VolumeID) VolumeID {
	pv, ok := w.pvs[a.PersistentVolume]
	led := was.IsReal()
	switch {
	case !a.Inline.IsZero():
		return a.Inline
	case led && !w.byName[a.Name]:
		return was
	case ok && !pv.Volume.IsZero() && (len(a.Name) != len("csi-")+64 || a.Name == AttachmentName(pv.Volume, a.Node)):
		delete(w.byName, a.Name)
		return pv.Volume
	case led:
		return was
	}
	return VolumeID{a.Driver, sourcePrefix + a.Name}
}

func (w *twin) match() {
	bound := map[twinKey]bool{}
	for uid, list := range w.podAt {
		for _, v := range list {
			bound[twinKey{v, w.pods[uid].Node}] = true
		}
	}
	for id, list := range w.ticketAt {
		for _, v := range list {
			bound[twinKey{v, w.tickets[id].Node}] = true
		}
	}
	for name, v := range w.vaAt {
		bound[twinKey{v, w.attachments[name].Node}] = true
	}
	for name, n := range w.nodes {
		for v := range n.reported {
			bound[twinKey{v, name}] = true
		}
		for v := range n.inUse {
			bound[twinKey{v, name}] = true
		}
		for v := range n.unknown {
			bound[twinKey{v, name}] = true
		}
	}
	for _, unsure := range []map[twinKey]bool{w.sent, w.reports} {
		for k := range unsure {
			bound[k] = true
		}
	}
	for v, h := range w.holds {
		bound[twinKey{v, h.Node}] = true
	}
	for k := range bound {
		a, ok := w.attachments[AttachmentName(k.v, k.n)]
		if ok && !w.vaAt[a.Name].IsReal() && a.Node == k.n && a.Driver == k.v.Driver && k.v.IsReal() && !k.v.IsZero() {
			w.vaAt[a.Name], w.byName[a.Name] = k.v, true
		}
	}
}

func (w *twin) workPlaces(now time.Time) {
	old := w.places
	w.places = map[twinKey]*twinPlace{}
	at := func(v VolumeID, n NodeName) *twinPlace {
		k := twinKey{v, n}
		if w.places[k] == nil {
			w.places[k] = &twinPlace{node: n}
		}
		return w.places[k]
	}
	for uid, list := range w.podAt {
		for _, v := range list {
			if !v.IsZero() {
				p := at(v, w.pods[uid].Node)
				p.users = add(p.users, User{Pod: uid})
			}
		}
	}
	for id, list := range w.ticketAt {
		for _, v := range list {
			if !v.IsZero() && w.tickets[id].Node != "" {
				p := at(v, w.tickets[id].Node)
				p.users = add(p.users, User{Ticket: id})
			}
		}
	}
	for name, v := range w.vaAt {
		a := w.attachments[name]
		a.own = v.IsReal() && a.Name == AttachmentName(v, a.Node)
		p := at(v, a.Node)
		p.attachments = append(p.attachments, &a)
	}
	for k, o := range old { // it was unknown for the former attachment
		none := len(o.attachments) > 0 && (w.places[k] == nil || len(w.places[k].attachments) == 0)
		if uid, _ := ownVA(o); hasOwn(o) && (!hasOwn(w.places[k]) || uid != ownUID(w.places[k])) || none && !o.held && !o.reportSent {
			w.trust(k)
		}
	}
	for name, n := range w.nodes {
		for v := range n.reported {
			at(v, name).reported = true
		}
		for v := range n.inUse {
			at(v, name).inUse = true
		}
		for v, boots := range n.unknown {
			at(v, name).unknown = boots
		}
	}
	for k := range w.sent {
		at(k.v, k.n).sent = true
	}
	for k := range w.reports {
		if w.nodes[k.n].reported[k.v] {
			delete(w.reports, k)
		} else {
			at(k.v, k.n).reportSent = true
		}
	}
	for v, h := range w.holds {
		if h.Stays && h.Node != "" {
			at(v, h.Node).left = true
		}
		if v.NoAttach() && h.Node != "" {
			at(v, h.Node).held = true
		}
	}
	for k, p := range w.places {
		p.onlyAsked = w.onlyAsked(p)
		w.history(now, p, old[k])
	}
}

func (w *twin) occupied(p *twinPlace) bool {
	return slices.ContainsFunc(p.users, func(u User) bool {
		return u.Pod != "" || w.tickets[u.Ticket].Phase == TicketGranted
	})
}

func (w *twin) onlyAsked(p *twinPlace) bool {
	if len(p.attachments) > 0 || p.reported || p.inUse || len(p.unknown) > 0 || p.sent || p.reportSent || p.left || p.held || len(p.users) == 0 {
		return false
	}
	for _, u := range p.users {
		t, ok := w.tickets[u.Ticket]
		told := t.Reason != "" && t.Reason != "Pending" && t.Reason != "NotGranted" && (t.Reason != "NoFreeSlot" || t.Type.Yields())
		if !ok || t.Phase != TicketPending || t.InDoubt || !told {
			return false
		}
	}
	return true
}

func (w *twin) history(now time.Time, p, old *twinPlace) {
	occupied := w.occupied(p)
	if old == nil {
		if !occupied {
			p.idle = now
		}
		return
	}
	p.idle, p.sawLeave, p.proof, p.forced, p.lapsed = old.idle, old.sawLeave, old.proof, old.forced, old.lapsed
	switch {
	case occupied:
		p.idle, p.sawLeave = time.Time{}, false
	case old.idle.IsZero():
		p.idle, p.sawLeave = now, true
	}
	uid, version := ownVA(p)
	oldUID, oldVersion := ownVA(old)
	news := uid != oldUID || version != oldVersion || p.reported && !old.reported || p.inUse && !old.inUse
	for _, u := range p.users {
		news = news || !slices.Contains(old.users, u)
	}
	if news {
		p.proof, p.forced = ProofNone, false
	}
	p.lapsed = p.reported && (p.lapsed || old.reported && oldUID != "" && uid != oldUID && !w.elsewhere(p, oldUID))
}

func (w *twin) elsewhere(p *twinPlace, uid string) bool {
	for _, a := range w.attachments {
		if a.UID == uid {
			return !slices.ContainsFunc(p.attachments, func(here *Attachment) bool { return here.Name == a.Name })
		}
	}
	return false
}

// The pod may have been the last user of any unused volume.
func (w *twin) doubtIdle(now time.Time, p Pod) {
	unknown := false
	for i, v := range p.Volumes {
		at := before(w.podAt[p.UID], i)
		_, link := w.resolvePod(p, v)
		unknown = unknown || link != LinkNone && (at.IsZero() || !at.IsReal())
	}
	for k, place := range w.places {
		if k.n == p.Node && unknown && p.Phase != PodFinished && !place.idle.IsZero() {
			place.idle, place.sawLeave = now, true
		}
	}
}

// The strictest PersistentVolume; if there never was one, the inline specs.
func (w *twin) workAccess() {
	known := map[VolumeID]bool{}
	for k := range w.places {
		known[k.v] = true
	}
	for v := range w.holds {
		known[v] = true
	}
	listed := map[VolumeID]Access{}
	for _, pv := range w.pvs {
		known[pv.Volume], w.named[pv.Volume] = true, true
		listed[pv.Volume] = max(listed[pv.Volume], pv.Access)
	}
	inline := map[VolumeID]Access{}
	for uid, at := range w.podAt {
		for _, v := range w.pods[uid].Volumes {
			if at != nil && v.Claim == "" {
				inline[v.Inline] = max(inline[v.Inline], v.Access)
			}
		}
	}
	for v := range known {
		if most, ok := listed[v]; ok {
			w.access[v] = most
		} else if inline[v] != AccessUnknown && !w.named[v] {
			w.access[v] = inline[v]
		}
	}
	for v := range w.access {
		if !known[v] {
			delete(w.access, v)
		}
	}
	for v := range w.named {
		if !known[v] {
			delete(w.named, v)
		}
	}
}

func (w *twin) workNodes(now time.Time) {
	needed := map[NodeName]bool{}
	for k := range w.places {
		needed[k.n] = true
		if n := w.node(k.n); !n.exists && n.notReady.IsZero() {
			n.notReady = now
		}
	}
	for _, t := range w.tickets {
		if t.Phase == TicketPending {
			needed[t.Node] = true
			w.node(t.Node)
		}
	}
	for name, n := range w.nodes {
		if !n.exists && !n.csinode && !needed[name] {
			delete(w.nodes, name)
		}
	}
}

func (w *twin) exhausted(n NodeName, driver string, is bool) {
	if node := w.nodes[n]; node != nil {
		d := node.driver(driver)
		d.Exhausted = is
		node.drivers[driver] = d
	}
}

func (w *twin) lapse(until time.Time) {
	for k, at := range w.refused {
		if !at.After(until) {
			delete(w.refused, k)
			w.exhausted(k.n, k.driver, false)
		}
	}
}
