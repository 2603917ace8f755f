// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"iter"
	"time"
)

// Snapshot is the facts at one instant. It is immutable, safe for parallel use, and costs nothing to keep.
// Its records are shared: read only.
type Snapshot struct {
	facts *facts
	delta *Delta
}

// With returns the snapshot as seen by a dry run. d is not copied.
func (s Snapshot) With(d *Delta) Snapshot {
	s.delta = d
	return s
}

// Delta returns the dry run of With, or nil.
func (s Snapshot) Delta() *Delta { return s.delta }

// Volume returns a volume's facts, or nil.
func (s Snapshot) Volume(v VolumeID) *Volume { return s.facts.volumes.get(v) }

// Node returns a node's facts, or nil.
func (s Snapshot) Node(n NodeName) *Node { return s.facts.nodes.get(n) }

// Pod returns a pod by UID, or nil.
func (s Snapshot) Pod(uid string) *Pod { return s.facts.pods.get(uid) }

// Ticket returns a ticket, or nil.
func (s Snapshot) Ticket(id TicketID) *Ticket { return s.facts.tickets.get(id) }

// NoForceOnTimeout says whether the event of this name has come.
func (s Snapshot) NoForceOnTimeout() bool { return s.facts.noForceOnTimeout }

// DropsHoldBoots says whether the API server drops the bootID from VolumeHolds, by the
// last HoldBoots.
func (s Snapshot) DropsHoldBoots() bool { return s.facts.dropsHoldBoots }

// Claim returns a claim, or nil when it does not exist.
func (s Snapshot) Claim(key ClaimKey) *Claim {
	if rec := s.facts.claims.get(key); rec != nil && rec.exists {
		return &rec.Claim
	}
	return nil
}

// ClaimPods returns the UIDs of the pods that refer to a claim, which may be
// missing.
func (s Snapshot) ClaimPods(key ClaimKey) []string {
	if rec := s.facts.claims.get(key); rec != nil {
		return rec.pods
	}
	return nil
}

// PersistentVolume returns a PersistentVolume, or nil when it does not exist.
func (s Snapshot) PersistentVolume(name string) *PersistentVolume {
	if rec := s.facts.pvs.get(name); rec != nil && rec.exists {
		return &rec.PersistentVolume
	}
	return nil
}

// ClaimOf is the claim that people know a volume by: the first claim in one of its PersistentVolumes. Zero:
// none.
func (s Snapshot) ClaimOf(pvs []string) ClaimKey {
	for _, name := range pvs {
		if pv := s.PersistentVolume(name); pv != nil && pv.Claim.Name != "" {
			return pv.Claim
		}
	}
	return ClaimKey{}
}

// StorageClass returns a class, or nil.
func (s Snapshot) StorageClass(name string) *StorageClass { return s.facts.classes.get(name) }

// AttachRequired says whether the driver's volumes need attachments. Without
// a CSIDriver object they do.
func (s Snapshot) AttachRequired(driver string) bool {
	d := s.facts.drivers.get(driver)
	return d == nil || d.AttachRequired
}

// NeedsNode says whether the driver keeps pods from nodes where it is not registered.
// Without a CSIDriver object it does not.
func (s Snapshot) NeedsNode(driver string) bool {
	d := s.facts.drivers.get(driver)
	return d != nil && d.NeedsNode
}

// SELinuxMount says whether kubelets mount the driver's volumes with SELinux labels. Without a CSIDriver
// object they don't.
func (s Snapshot) SELinuxMount(driver string) bool {
	d := s.facts.drivers.get(driver)
	return d != nil && d.SELinuxMount
}

// KnowsDriver says whether a driver exists: it has a CSIDriver object, or a node registers it. Without the
// object it looks at all nodes.
func (s Snapshot) KnowsDriver(driver string) bool {
	if s.facts.drivers.get(driver) != nil {
		return true
	}
	for n := range s.Nodes() {
		if n.Driver(driver).Registered {
			return true
		}
	}
	return false
}

// Attachment returns a VolumeAttachment by name, or nil.
func (s Snapshot) Attachment(name string) *Attachment {
	return s.facts.attachments.get(name).unpack()
}

// Idle returns since when a VolumeOnNode has had no pod and no granted ticket, as this process saw it; or
// when this process first saw the VolumeOnNode without them, and not before Complete. False, and a time long
// ago, while it has any.
func (s Snapshot) Idle(p *VolumeOnNode) (time.Time, bool) {
	if p.idle == busy {
		return time.Time{}, false
	}
	since := s.facts.epoch.Add(p.idle)
	if since.Before(s.facts.complete) {
		since = s.facts.complete
	}
	return since, true
}

// Vacant returns since when this process has known that the node has looked for a volume after the
// question, and found nothing, then and in each look since; zero: never.
func (s Snapshot) Vacant(p *VolumeOnNode) time.Time { return s.facts.vacant(p) }

func (w *facts) vacant(p *VolumeOnNode) time.Time {
	if p.Proof.vacant == 0 {
		return time.Time{}
	}
	return w.epoch.Add(p.Proof.vacant - 1)
}

// Interrupted returns since when this process has known the ticket's present number of interruptions.
func (s Snapshot) Interrupted(t *Ticket) time.Time { return s.facts.epoch.Add(t.interrupted) }

// Leaving returns since when this process has seen the attachment at a node being deleted. False: it is
// not.
func (s Snapshot) Leaving(p *VolumeOnNode) (time.Time, bool) {
	if p == nil || p.first == nil || !p.first.deleting {
		return time.Time{}, false
	}
	return s.facts.epoch.Add(p.first.odd.seen), true
}

// AttachmentVolume returns the volume that a known attachment is of.
func (s Snapshot) AttachmentVolume(name string) VolumeID {
	if a := s.facts.attachments.get(name); a != nil {
		return a.at()
	}
	return VolumeID{}
}

// Policies iterates over the policies, unordered.
func (s Snapshot) Policies() iter.Seq[*Policy] { return s.facts.policies.all() }

// Volumes iterates over the volumes, in the order of their hashes.
func (s Snapshot) Volumes() iter.Seq[*Volume] { return s.facts.volumes.all() }

// Nodes iterates over the nodes, in the order of their hashes. Detached is none.
func (s Snapshot) Nodes() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for n := range s.facts.nodes.all() {
			if n.Name != Detached && !yield(n) {
				return
			}
		}
	}
}

// Pods iterates over the pods, in the order of their hashes.
func (s Snapshot) Pods() iter.Seq[*Pod] { return s.facts.pods.all() }

// Tickets iterates over the tickets, in the order of their hashes.
func (s Snapshot) Tickets() iter.Seq[*Ticket] { return s.facts.tickets.all() }

// Size is the number of volumes known.
func (s Snapshot) Size() int { return s.facts.volumes.size }

// PodAt lists the volume of each reference of a bound, unfinished pod: zero if it leads nowhere, one volume
// perhaps more than once. After them come earlier volumes of its claims that it may still use. Read only.
func (s Snapshot) PodAt(uid string) []VolumeID {
	if p := s.facts.pods.get(uid); p != nil {
		return p.at
	}
	return nil
}

// TicketAt lists the volume of each reference of a ticket that counts: zero if it leads nowhere, one volume
// perhaps more than once. Read only.
func (s Snapshot) TicketAt(id TicketID) []VolumeID {
	if t := s.facts.tickets.get(id); t != nil {
		return t.at
	}
	return nil
}

// ResolvePod follows one volume of a pod, known or not.
func (s Snapshot) ResolvePod(p *Pod, v PodVolume) (VolumeID, Link) { return s.facts.resolvePod(p, v) }

// ResolveTicket follows one volume of a ticket, known or not.
func (s Snapshot) ResolveTicket(t *Ticket, v TicketVolume) (VolumeID, Link) {
	return s.facts.resolveTicket(t, v)
}
