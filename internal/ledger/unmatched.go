// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"strings"
	"time"
)

// A VolumeAttachment names its volume by a PersistentVolume. If that is unseen or made again for another
// disk, the attachment's name (AttachmentName) identifies the volume. The record is byName until its
// PersistentVolume agrees.
//
// Candidates are volumes with a place or a hold at the node, and PersistentVolumes' volumes, since a disk
// may be imported under another name. The last are checked from Complete on: before, most PersistentVolumes
// come later.

type driverNode struct {
	driver string
	node   NodeName
}

// unmatched is about a driver's unknown volumes at a node.
type unmatched struct {
	at          driverNode
	attachments []string // of unknown volumes
	holds       []string // handles of volumes without a VolumeOnNode here whose hold names the node
	gen         uint64
}

// unmatchedAt returns a record for change. A caller that removes something sweeps it.
func (l *Ledger) unmatchedAt(at driverNode) *unmatched {
	old := l.facts.unmatched.get(at)
	if old != nil && old.gen == l.gen {
		return old
	}
	rec := &unmatched{at: at}
	if old != nil {
		*rec = *old
	}
	rec.gen = l.gen
	l.facts.unmatched.put(l.gen, at, rec)
	return rec
}

func (l *Ledger) sweepUnmatched(rec *unmatched) {
	if len(rec.attachments) == 0 && len(rec.holds) == 0 {
		l.facts.unmatched.del(l.gen, rec.at)
	}
}

// volumeNamedBy is the candidate volume that leads to the attachment's name; zero: none.
func (l *Ledger) volumeNamedBy(a *Attachment) VolumeID {
	if !strings.HasPrefix(a.Name, attachmentPrefix) {
		return VolumeID{}
	}
	if n := l.facts.nodes.get(a.Node); n != nil {
		if i, ok := n.driver(a.Driver); ok {
			for handle := range n.Drivers[i].handles.all() {
				if v := (VolumeID{a.Driver, handle}); leadsTo(a.Name, v, a.Node) {
					return v
				}
			}
		}
	}
	if u := l.facts.unmatched.get(driverNode{a.Driver, a.Node}); u != nil {
		for _, handle := range u.holds {
			if v := (VolumeID{a.Driver, handle}); leadsTo(a.Name, v, a.Node) {
				return v
			}
		}
	}
	return VolumeID{}
}

// match gives a volume the attachment with its name, if the attachment's volume is unknown.
func (l *Ledger) match(now time.Time, t *Touched, v VolumeID, n NodeName) {
	u := l.facts.unmatched.get(driverNode{v.Driver, n})
	if u == nil || len(u.attachments) == 0 || !v.IsReal() {
		return
	}
	name := AttachmentName(v, n)
	if !slices.Contains(u.attachments, name) {
		return
	}
	old := l.facts.attachments.get(name)
	l.replaceAttachment(now, t, old, old.unpack(), v, true)
}

// matchEverywhere is match at any node, from Complete on: before, any PersistentVolume may come later.
func (l *Ledger) matchEverywhere(now time.Time, t *Touched, v VolumeID) {
	if l.facts.complete.IsZero() {
		return
	}
	for _, n := range l.unmatchedNodes(v.Driver) {
		l.match(now, t, v, n)
	}
}

// unmatchedNodes are the nodes with a driver's unknown volumes; usually none after Complete.
func (l *Ledger) unmatchedNodes(driver string) []NodeName {
	var nodes []NodeName
	for u := range l.facts.unmatched.all() {
		if u.at.driver == driver && len(u.attachments) > 0 {
			nodes = append(nodes, u.at.node)
		}
	}
	return nodes
}

// matchAll is matchEverywhere for every volume that is known.
func (l *Ledger) matchAll(now time.Time, t *Touched) {
	nodes := map[string][]NodeName{}
	for u := range l.facts.unmatched.all() {
		if len(u.attachments) > 0 {
			nodes[u.at.driver] = append(nodes[u.at.driver], u.at.node)
		}
	}
	if len(nodes) == 0 {
		return
	}
	var found []VolumeID
	for v := range l.facts.volumes.all() {
		if slices.ContainsFunc(nodes[v.ID.Driver], func(n NodeName) bool { return l.unmatchedNamed(v.ID, n) }) {
			found = append(found, v.ID)
		}
	}
	for _, v := range found {
		l.matchEverywhere(now, t, v)
	}
}

// unmatchedNamed says whether an unknown volume's attachment has a volume's name at a node.
func (l *Ledger) unmatchedNamed(v VolumeID, n NodeName) bool {
	u := l.facts.unmatched.get(driverNode{v.Driver, n})
	return u != nil && v.IsReal() && slices.Contains(u.attachments, AttachmentName(v, n))
}

// noteHold updates the holds that name a node without a VolumeOnNode, for a hold's former and present node
// (empty: none).
func (l *Ledger) noteHold(now time.Time, t *Touched, v VolumeID, was, is NodeName) {
	if was == is {
		return
	}
	l.listHold(v, was, false)
	if is != "" && l.facts.volumes.get(v).OnNode(is) == nil {
		l.listHold(v, is, true)
		l.match(now, t, v, is)
	}
}

func (l *Ledger) listHold(v VolumeID, n NodeName, listed bool) {
	at := driverNode{v.Driver, n}
	u := l.facts.unmatched.get(at)
	if n == "" || u == nil && !listed || u != nil && slices.Contains(u.holds, v.Handle) == listed {
		return
	}
	rec := l.unmatchedAt(at)
	if listed {
		rec.holds = add(rec.holds, v.Handle)
		return
	}
	rec.holds = drop(rec.holds, v.Handle)
	l.sweepUnmatched(rec)
}
