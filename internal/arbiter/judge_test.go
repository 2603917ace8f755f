// SPDX-License-Identifier: Apache-2.0

package arbiter_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// judge watches what really happens to the disks and the mounts. It knows
// nothing of ledger or arbiter but the names of things.
type judge struct {
	c      *cluster
	faults []string
}

func (j *judge) fault(format string, args ...any) {
	j.faults = append(j.faults, fmt.Sprintf(format, args...))
}

// dead says whether what runs at a node may be taken for fenced.
func (j *judge) dead(n ledger.NodeName) bool {
	node, exists := j.c.nodes[n]
	return !exists || node.Ready != ledger.ReadyTrue
}

// seemsDead says so of what the controller has seen last: to promise a volume
// on that is safe, since the detach looks again.
func (j *judge) seemsDead(n ledger.NodeName) bool {
	node := j.c.snapshot().Node(n)
	return node == nil || !node.Exists || node.Ready != ledger.ReadyTrue
}

// publishes: an exclusive volume is at one node at a time.
func (j *judge) publishes(v ledger.VolumeID, n ledger.NodeName) {
	for other := range j.c.disks.at[v] {
		if other != n && j.c.isExclusive(v) && !j.migrates(v) {
			j.fault("%s is attached to %s while it is attached to %s", volumeName(j.c, v), n, other)
		}
	}
}

// migrates says whether a granted live migration lets a volume be at two
// nodes.
func (j *judge) migrates(v ledger.VolumeID) bool {
	for _, t := range j.c.tickets {
		if t.Type != ledger.TypeLiveMigration || t.Phase != ledger.TicketGranted {
			continue
		}
		for _, tv := range t.Volumes {
			if id, ok := j.c.resolve(ledger.ClaimKey{Namespace: t.ID.Namespace, Name: tv.Claim}); ok && id == v {
				return true
			}
		}
	}
	return false
}

// unpublishes: no detach of a mounted volume, unless its node is dead.
func (j *judge) unpublishes(v ledger.VolumeID, n ledger.NodeName) {
	if k := j.c.kubelets[n]; k != nil && len(k.mounted[v]) > 0 && !j.dead(n) {
		j.fault("%s is detached from %s, where it is mounted and which is ready", volumeName(j.c, v), n)
	}
}

// mounts: no mount of what is not attached, and of an exclusive volume at one
// node at a time unless the other is dead.
func (j *judge) mounts(v ledger.VolumeID, n ledger.NodeName) {
	if !v.NoAttach() && !j.c.disks.at[v][n] {
		j.fault("%s is mounted at %s, where it is not attached", volumeName(j.c, v), n)
	}
	for other, k := range j.c.kubelets {
		if other != n && len(k.mounted[v]) > 0 && j.c.isExclusive(v) && !j.dead(other) && !j.migrates(v) {
			j.fault("%s is mounted at %s and %s", volumeName(j.c, v), n, other)
		}
	}
}

// deletes: no VolumeAttachment is deleted while its volume is in use at a
// node that is ready.
func (j *judge) deletes(v ledger.VolumeID, n ledger.NodeName) {
	if node := j.c.nodes[n]; node.Ready == ledger.ReadyTrue && slices.Contains(node.InUse, v) {
		j.fault("the attachment of %s at %s is deleted while it is in use", volumeName(j.c, v), n)
	}
	j.unpublishes(v, n)
}

// grants: no grant takes a node past the limit that stands now. Slots are
// counted from the API's objects alone: a volume at a node once, however many
// of them bind it there.
func (j *judge) grants(t ledger.Ticket) {
	for _, v := range j.ticketVolumes(t) {
		j.grantsExclusive(t, v)
	}
	limits := map[string]int32{}
	for _, d := range j.c.csinodes[t.Node].Drivers {
		limits[d.Name] = d.Limit
	}
	used := j.bound(t.Node)
	before := map[string]int32{}
	for v := range j.believed(t.Node, used) {
		before[v.Driver]++
	}
	after := map[string]int32{}
	for _, v := range j.ticketVolumes(t) {
		used[v] = true
	}
	for v := range used {
		after[v.Driver]++
	}
	for driver, n := range after {
		limit, registered := limits[driver]
		if registered && limit != ledger.NoLimit && n > limit && n > before[driver] {
			j.fault("ticket %s is granted at %s past the limit of %s: %d of %d", ticketName(t), t.Node, driver, n, limit)
		}
	}
}

// believed adds to what is bound to a node what the controller still sees
// pods, attachments, creations or earlier grants bind there: it grants no slot that it
// has given.
func (j *judge) believed(n ledger.NodeName, bound map[ledger.VolumeID]bool) map[ledger.VolumeID]bool {
	all := maps.Clone(bound)
	s := j.c.snapshot()
	node := s.Node(n)
	if node == nil {
		return all
	}
	for _, v := range node.At() {
		p := s.Volume(v).NodeVolume(n)
		given := slices.ContainsFunc(p.Users, func(u ledger.User) bool {
			return u.Pod != "" || s.Ticket(u.Ticket).Phase == ledger.TicketGranted
		})
		if given || p.HasAttachments() || p.Reported || p.InUse || p.Sent || p.Left {
			all[v] = true
		}
	}
	return all
}

// grantsExclusive: an exclusive volume is granted at one node at a time, but
// for those at dead nodes and those who are leaving.
func (j *judge) grantsExclusive(t ledger.Ticket, v ledger.VolumeID) {
	if !j.c.isExclusive(v) || t.Type == ledger.TypeLiveMigration || j.migrates(v) {
		return
	}
	for _, other := range j.c.tickets {
		pod, ok := j.c.pods[other.Pod]
		yields := other.Type == ledger.TypeSnapshot && t.Type != ledger.TypeSnapshot
		if other.ID == t.ID || other.Node == t.Node || other.Phase != ledger.TicketGranted || j.dead(other.Node) || j.seemsDead(other.Node) || yields ||
			other.Type == ledger.TypePod && (!ok || pod.Phase != ledger.PodLive) {
			continue
		}
		if slices.Contains(j.ticketVolumes(other), v) && j.c.holds[v].Node == other.Node {
			j.fault("%s is granted at %s while it is granted at %s", volumeName(j.c, v), t.Node, other.Node)
		}
	}
}

// bound are the volumes that bound pods, granted tickets, VolumeAttachments, their
// creations in flight or the node's status bind to a node.
func (j *judge) bound(n ledger.NodeName) map[ledger.VolumeID]bool {
	used := map[ledger.VolumeID]bool{}
	node := j.c.nodes[n]
	for _, v := range slices.Concat(node.InUse, node.Reported) {
		used[v] = true
	}
	for _, va := range j.c.attachments {
		if v, ok := j.c.source(va); ok && va.Node == n {
			used[v] = true
		}
	}
	for v, nodes := range j.c.disks.at {
		if nodes[n] {
			used[v] = true // left there, whatever the API says
		}
	}
	for _, s := range j.c.flying {
		if s.Node == n {
			used[s.Volume] = true
		}
	}
	for _, p := range j.c.podsAt(n) {
		if p.Phase != ledger.PodFinished {
			for _, v := range p.Volumes {
				if id, ok := j.slotOf(p.Namespace, v.Claim, v.Inline); ok {
					used[id] = true
				}
			}
		}
	}
	for _, t := range j.c.tickets {
		if t.Node == n && t.Phase == ledger.TicketGranted {
			for _, v := range j.ticketVolumes(t) {
				used[v] = true
			}
		}
	}
	return used
}

// ticketVolumes are the volumes that a ticket needs slots for; of a pod's, an
// unbound claim stands for the volume it will become.
func (j *judge) ticketVolumes(t ledger.Ticket) []ledger.VolumeID {
	var list []ledger.VolumeID
	for _, tv := range t.Volumes {
		inline := j.c.pvs[tv.PersistentVolume].Volume
		for _, v := range j.c.pods[t.Pod].Volumes {
			if v.Name == tv.PodVolume {
				inline = v.Inline
			}
		}
		if id, ok := j.slotOf(t.ID.Namespace, tv.Claim, inline); ok && (t.Type == ledger.TypePod || !isClaim(id)) {
			list = append(list, id)
		}
	}
	return list
}

// isClaim says whether v stands for a claim that is not bound yet.
func isClaim(v ledger.VolumeID) bool { return strings.HasPrefix(v.Handle, "claim ") }

// slotOf is the volume that a claim or an inline volume needs a slot for.
func (j *judge) slotOf(namespace, claim string, inline ledger.VolumeID) (ledger.VolumeID, bool) {
	key := ledger.ClaimKey{Namespace: namespace, Name: claim}
	id, ok := j.c.resolve(key)
	if k := j.c.claims[key]; !ok && k.UID != "" && !k.Bound {
		id, ok = ledger.VolumeID{Driver: j.c.classes[k.Class].Driver, Handle: "claim " + k.UID}, true
	}
	if claim == "" {
		id, ok = inline, inline != ledger.VolumeID{}
	}
	d, known := j.c.drivers[id.Driver]
	return id, ok && !id.NoAttach() && (!known || d.AttachRequired)
}
