// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"slices"
	"time"
)

// changeVolumeOnNode changes the VolumeOnNode of v at n, makes and removes it as needed, and updates the
// counted slots.
func (l *Ledger) changeVolumeOnNode(now time.Time, t *Touched, v VolumeID, n NodeName, change func(*VolumeOnNode)) {
	if v.IsZero() || n == "" {
		return
	}
	vol := l.volume(v)
	i, found := slices.BinarySearchFunc(vol.OnNodes, n, func(p VolumeOnNode, n NodeName) int { return cmp.Compare(p.Node, n) })
	var before VolumeOnNode
	if found {
		before = vol.OnNodes[i]
	} else {
		vol.OnNodes = insertAt(vol.OnNodes, i, VolumeOnNode{Node: n, idle: busy})
	}
	change(&vol.OnNodes[i])
	after := &vol.OnNodes[i]
	after.ReportSent = after.ReportSent && !after.Reported // then the node reports it
	switch {
	case l.occupied(after):
		after.idle, after.SawLeave = busy, false
	case after.idle == busy:
		after.idle, after.SawLeave = now.Sub(l.facts.epoch), found
	}
	after.Lapsed = after.Reported && (after.Lapsed || before.Reported && l.lapses(&before, after))
	after.OnlyAsked = l.onlyAsked(after)
	listed := after.InUse && l.isReady(n) // then a reporting kubelet's list tells
	after.Unlisted = after.MayBeThere(v) && (l.unlisted(after) || after.Unlisted && !listed)
	if by := l.unlistedBy(after); by != after.UnlistedBy() {
		after.setOdd(by, after.SawUnknown())
	}
	reported, inUse, asked := after.Reported, after.InUse, after.OnlyAsked
	gone := after.Empty()
	had, has := before.OccupiesSlotWithoutUse(), after.OccupiesSlotWithoutUse()
	if gone {
		vol.OnNodes = removeAt(vol.OnNodes, i)
		l.sweep(vol)
	}
	t.volume(v)
	if found == !gone && before.Reported == reported && before.InUse == inUse && before.OnlyAsked == asked && had == has {
		return
	}
	node := l.node(n)
	if had != has {
		node.ownDriver(v.Driver).Occupied += int32(count(has) - count(had))
	}
	if had && !has {
		t.node(n) // for waiters for the slot
	}
	if before.OnlyAsked != asked {
		node.ownDriver(v.Driver).OnlyAsked += int32(count(asked) - count(before.OnlyAsked))
		t.node(n)
	}
	if !node.Exists && node.NotReady.IsZero() {
		node.NotReady = now
	}
	node.reported += count(reported) - count(before.Reported)
	node.inUse += count(inUse) - count(before.InUse)
	switch {
	case !found && !gone:
		l.enter(now, t, node, vol)
	case found && gone:
		l.leave(now, t, node, vol)
	}
}

// enter notes that there is now a VolumeOnNode of a volume at a node.
func (l *Ledger) enter(now time.Time, t *Touched, node *Node, v *Volume) {
	node.enter(v.ID)
	t.node(node.Name)
	l.recount(now, t, node)
	l.listHold(v.ID, node.Name, false)
	l.match(now, t, v.ID, node.Name)
	l.keepAlone(t, v.ID, node.Name)
}

// leave notes that the VolumeOnNode of a volume at a node is gone.
func (l *Ledger) leave(now time.Time, t *Touched, node *Node, v *Volume) {
	node.leave(v.ID)
	t.node(node.Name)
	l.recount(now, t, node)
	l.listHold(v.ID, node.Name, v.Hold != nil && v.Hold.Node == node.Name)
	l.keepAlone(t, v.ID, node.Name)
	l.sweepNode(node)
}

// lapses: the own attachment ended or was made again. False if it was always another volume's, and only its
// name led here.
func (l *Ledger) lapses(before, after *VolumeOnNode) bool {
	was := before.first
	if !before.HasOwn() || after.HasOwn() && (was == after.first || was.uidText() == after.first.uidText()) {
		return false
	}
	is := l.facts.attachments.get(was.name())
	return is == nil || is.uidText() != was.uidText() || is.at() == was.at()
}

// occupied ignores pending tickets: they also come and go at a dead node.
func (l *Ledger) occupied(p *VolumeOnNode) bool {
	for _, u := range p.Users {
		if u.Pod != "" {
			return true
		}
		if k := l.facts.tickets.get(u.Ticket); k != nil && (k.Phase == TicketGranted) {
			return true
		}
	}
	return false
}

// unlisted says whether a ticket is granted the volume.
func (l *Ledger) unlisted(p *VolumeOnNode) bool {
	return slices.ContainsFunc(p.Users, func(u User) bool { return l.unlistedHolder(u) != nil })
}

// unlistedHolder is a user's granted ticket, or nil.
func (l *Ledger) unlistedHolder(u User) *Ticket {
	k := l.facts.tickets.get(u.Ticket)
	if u.Pod != "" || k == nil || k.Phase != TicketGranted {
		return nil
	}
	return k
}

// unlistedBy is the former or a later ticket that makes the volume Unlisted.
func (l *Ledger) unlistedBy(p *VolumeOnNode) *Requester {
	if !p.Unlisted {
		return nil
	}
	had := p.UnlistedBy()
	by := had
	for _, u := range p.Users {
		switch k := l.unlistedHolder(u); {
		case k == nil:
		case had != nil && had.UID == k.UID:
			return had
		case by == had:
			by = &Requester{Ticket: true, Namespace: k.ID.Namespace, Name: k.ID.Name, UID: k.UID}
		}
	}
	return by
}

func (l *Ledger) isReady(n NodeName) bool {
	node := l.facts.nodes.get(n)
	return node != nil && node.Exists && node.Ready == ReadyTrue
}

// onlyAsked says whether only tickets that wait and keep no slot bind the volume to the node.
func (l *Ledger) onlyAsked(p *VolumeOnNode) bool {
	if len(p.Users) == 0 || p.OccupiesSlot() || p.WithoutAttachment() {
		return false
	}
	return !slices.ContainsFunc(p.Users, func(u User) bool {
		k := l.facts.tickets.get(u.Ticket)
		return u.Pod != "" || k == nil || k.KeepsSlots()
	})
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (n *Node) enter(v VolumeID) {
	d := n.ownDriver(v.Driver)
	if more, changed := d.handles.with(v.Handle); changed {
		d.handles = more
		d.Used++
	}
}

func (n *Node) leave(v VolumeID) {
	d := n.ownDriver(v.Driver)
	if fewer, changed := d.handles.without(v.Handle); changed {
		d.handles = fewer
		d.Used--
	}
	n.sweepDrivers()
}

// sweepDrivers removes empty entries, but remembers a driver's last CSINode entry.
func (n *Node) sweepDrivers() {
	if n.inBulk {
		return
	}
	n.Drivers = slices.DeleteFunc(n.Drivers, func(d NodeDriver) bool {
		return d.Used == 0 && !d.Registered && !d.Exhausted && d.DriverOnNode == DriverOnNode{Name: d.Name, Limit: NoLimit}
	})
}

// ownDriver returns an entry for change, new if needed. n and its slices are owned.
func (n *Node) ownDriver(name string) *NodeDriver {
	i, found := n.driver(name)
	if !found {
		n.Drivers = slices.Insert(n.Drivers, i, unknownDriver(name))
	}
	return &n.Drivers[i]
}

// ownDrivers makes missing entries. n and its slices are owned.
func (n *Node) ownDrivers(names []string) {
	slices.Sort(names)
	had := len(n.Drivers)
	for _, name := range slices.Compact(names) {
		if _, found := (&Node{Drivers: n.Drivers[:had]}).driver(name); !found {
			n.Drivers = append(n.Drivers, unknownDriver(name))
		}
	}
	slices.SortFunc(n.Drivers, func(a, b NodeDriver) int { return cmp.Compare(a.Name, b.Name) })
}

func unknownDriver(name string) NodeDriver {
	return NodeDriver{DriverOnNode: DriverOnNode{Name: name, Limit: NoLimit}}
}

// beginBulk prepares a node for many volumes: unused entries stay until end. A node may list as many
// drivers as volumes.
func (l *Ledger) beginBulk(n NodeName, lists ...[]VolumeID) (end func()) {
	rec := l.node(n)
	if rec.inBulk {
		return func() {}
	}
	var drivers []string
	for _, list := range lists {
		for _, v := range list {
			if len(drivers) == 0 || drivers[len(drivers)-1] != v.Driver {
				drivers = append(drivers, v.Driver)
			}
		}
	}
	rec.ownDrivers(drivers)
	rec.inBulk = true
	return func() {
		rec.inBulk = false
		rec.sweepDrivers()
		l.sweepNode(rec)
	}
}

// volume returns a record for change, new if needed.
func (l *Ledger) volume(v VolumeID) *Volume {
	old := l.facts.volumes.get(v)
	if old != nil && old.gen == l.gen {
		return old
	}
	rec := &Volume{ID: v, gen: l.gen}
	if old != nil {
		*rec = *old
		rec.gen = l.gen
		rec.OnNodes = slices.Clone(old.OnNodes)
	}
	l.facts.volumes.put(l.gen, v, rec)
	return rec
}

// sweep removes the record of a volume without facts.
func (l *Ledger) sweep(v *Volume) {
	if len(v.OnNodes) == 0 && v.pvs == nil && v.Hold == nil {
		l.facts.volumes.del(l.gen, v.ID)
	}
}

// node returns a record for change, new if needed.
func (l *Ledger) node(n NodeName) *Node {
	old := l.facts.nodes.get(n)
	if old != nil && old.gen == l.gen {
		return old
	}
	rec := &Node{NodeState: NodeState{Name: n}, gen: l.gen}
	if old != nil {
		*rec = *old
		rec.gen = l.gen
		rec.Drivers = slices.Clone(old.Drivers)
	}
	l.facts.nodes.put(l.gen, n, rec)
	return rec
}

// sweepNode removes the record of a deleted node without facts.
func (l *Ledger) sweepNode(n *Node) {
	if n.inBulk {
		return
	}
	used := slices.ContainsFunc(n.Drivers, func(d NodeDriver) bool { return d.Used > 0 })
	if !n.Exists && !n.CSINode && n.Word == nil && !used && len(n.Tickets) == 0 {
		l.facts.nodes.del(l.gen, n.Name)
	}
}
