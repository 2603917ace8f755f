// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"iter"
	"time"
)

// Snapshot is the facts at an instant: immutable, free to keep, safe for parallel use, with read-only
// records.
type Snapshot struct {
	facts *facts
	delta *Delta
}

// With applies a dry run, without a copy of d.
func (s Snapshot) With(d *Delta) Snapshot {
	s.delta = d
	return s
}

// Delta is With's dry run, or nil.
func (s Snapshot) Delta() *Delta { return s.delta }

// Volume returns a volume, or nil.
func (s Snapshot) Volume(v VolumeID) *Volume { return s.facts.volumes.get(v) }

// Node returns a node, or nil.
func (s Snapshot) Node(n NodeName) *Node { return s.facts.nodes.get(n) }

// Pod returns a pod by UID, or nil.
func (s Snapshot) Pod(uid string) *Pod { return s.facts.pods.get(uid) }

// Ticket returns a ticket, or nil.
func (s Snapshot) Ticket(id TicketID) *Ticket { return s.facts.tickets.get(id) }

// NoForceOnTimeout: the event has come.
func (s Snapshot) NoForceOnTimeout() bool { return s.facts.noForceOnTimeout }

// DropsHoldBoots is the last HoldBoots.
func (s Snapshot) DropsHoldBoots() bool { return s.facts.dropsHoldBoots }

// Claim returns a claim, or nil.
func (s Snapshot) Claim(key ClaimKey) *Claim {
	if rec := s.facts.claims.get(key); rec != nil && rec.exists {
		return &rec.Claim
	}
	return nil
}

// ClaimPods returns the UIDs of a claim's pods, even if the claim is missing.
func (s Snapshot) ClaimPods(key ClaimKey) []string {
	if rec := s.facts.claims.get(key); rec != nil {
		return rec.pods
	}
	return nil
}

// PersistentVolume returns it, or nil.
func (s Snapshot) PersistentVolume(name string) *PersistentVolume {
	if rec := s.facts.pvs.get(name); rec != nil && rec.exists {
		return &rec.PersistentVolume
	}
	return nil
}

// ClaimOf is the first claim of its PersistentVolumes, for people; zero: none.
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

// AttachRequired is true without a CSIDriver object.
func (s Snapshot) AttachRequired(driver string) bool {
	d := s.facts.drivers.get(driver)
	return d == nil || d.AttachRequired
}

// NeedsNode: the driver keeps pods from unregistered nodes. False without a CSIDriver object.
func (s Snapshot) NeedsNode(driver string) bool {
	d := s.facts.drivers.get(driver)
	return d != nil && d.NeedsNode
}

// SELinuxMount: kubelets mount the driver's volumes with labels. False without a CSIDriver object.
func (s Snapshot) SELinuxMount(driver string) bool {
	d := s.facts.drivers.get(driver)
	return d != nil && d.SELinuxMount
}

// KnowsDriver: a CSIDriver object exists or a node registers it. Without the object it looks at all nodes.
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

// Attachment returns a VolumeAttachment, or nil.
func (s Snapshot) Attachment(name string) *Attachment {
	return s.facts.attachments.get(name).unpack()
}

// Idle returns since when, from Complete on, this process saw no pod or granted ticket. False, and a time
// long ago: it has some.
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

// Vacant is since when all looks after the question found no volume; zero: never.
func (s Snapshot) Vacant(p *VolumeOnNode) time.Time { return s.facts.vacant(p) }

func (w *facts) vacant(p *VolumeOnNode) time.Time {
	if p.Proof.vacant == 0 {
		return time.Time{}
	}
	return w.epoch.Add(p.Proof.vacant - 1)
}

// Interrupted is since when this process knows the ticket's number of interruptions.
func (s Snapshot) Interrupted(t *Ticket) time.Time { return s.facts.epoch.Add(t.interrupted) }

// Leaving is since when this process saw the attachment's deletion; false: none.
func (s Snapshot) Leaving(p *VolumeOnNode) (time.Time, bool) {
	if p == nil || p.first == nil || !p.first.deleting {
		return time.Time{}, false
	}
	return s.facts.epoch.Add(p.first.odd.seen), true
}

// AttachmentVolume is a known attachment's volume.
func (s Snapshot) AttachmentVolume(name string) VolumeID {
	if a := s.facts.attachments.get(name); a != nil {
		return a.at()
	}
	return VolumeID{}
}

// Policies iterates, unordered.
func (s Snapshot) Policies() iter.Seq[*Policy] { return s.facts.policies.all() }

// Volumes iterates in the order of hashes.
func (s Snapshot) Volumes() iter.Seq[*Volume] { return s.facts.volumes.all() }

// Nodes iterates in the order of hashes, without Detached.
func (s Snapshot) Nodes() iter.Seq[*Node] {
	return func(yield func(*Node) bool) {
		for n := range s.facts.nodes.all() {
			if n.Name != Detached && !yield(n) {
				return
			}
		}
	}
}

// Pods iterates in the order of hashes.
func (s Snapshot) Pods() iter.Seq[*Pod] { return s.facts.pods.all() }

// Tickets iterates in the order of hashes.
func (s Snapshot) Tickets() iter.Seq[*Ticket] { return s.facts.tickets.all() }

// Size counts the known volumes.
func (s Snapshot) Size() int { return s.facts.volumes.size }

// PodAt lists a bound, unfinished pod's volumes by reference (zero: dead; duplicates occur), then its other
// possible volumes. Read only.
func (s Snapshot) PodAt(uid string) []VolumeID {
	if p := s.facts.pods.get(uid); p != nil {
		return p.at
	}
	return nil
}

// TicketAt lists a counting ticket's volumes by reference (zero: dead; duplicates occur). Read only.
func (s Snapshot) TicketAt(id TicketID) []VolumeID {
	if t := s.facts.tickets.get(id); t != nil {
		return t.at
	}
	return nil
}

// ResolvePod follows a pod's volume; the pod may be unknown.
func (s Snapshot) ResolvePod(p *Pod, v PodVolume) (VolumeID, Link) { return s.facts.resolvePod(p, v) }

// ResolveTicket follows a ticket's volume; the ticket may be unknown.
func (s Snapshot) ResolveTicket(t *Ticket, v TicketVolume) (VolumeID, Link) {
	return s.facts.resolveTicket(t, v)
}
