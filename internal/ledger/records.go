// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"time"
)

// Volume is all that is known of one volume. Read only outside this package.
type Volume struct {
	ID     VolumeID
	PVs    []string // names of the PersistentVolumes that name it, sorted
	Access Access   // the most restrictive of theirs
	Places []Place  // in the order of their nodes
	Hold   *Hold    // nil: no VolumeHold
	// Forced is how far a forced detach had come when this process first saw
	// the hold, at ForcedAt: what an earlier process measured.
	Forced   Force
	ForcedAt time.Time

	inline Access // the most restrictive of pods that name it inline
	gen    uint64
}

// Place is a volume at a node.
type Place struct {
	Node        NodeName
	Attachments []*Attachment // more than one only when a foreign one exists
	Users       []User
	Reported    bool // in the node's volumesAttached
	InUse       bool // in the node's volumesInUse, as last reported
	Proof       Proof
	// Lapsed says that Reported is from before: the attachment that it was
	// about is gone, and the node has not stopped to report it since.
	Lapsed bool
	// Idle is when the last pod or granted ticket left, as this process saw
	// it, or when this process first saw the place without one. Zero while it
	// has any.
	Idle time.Time
	// SawLeave says that this process saw the last user leave, so that Idle
	// is the whole truth and no earlier process measured before it.
	SawLeave bool
}

// Empty says whether nothing binds the volume to the node any more.
func (p *Place) Empty() bool {
	return len(p.Attachments) == 0 && len(p.Users) == 0 && !p.Reported && !p.InUse
}

// User is a pod bound to a node or a ticket for it; one of the two is set.
type User struct {
	Pod    string // UID
	Ticket TicketID
}

// Proof is how far a detach has come, as this process has proved it. It is
// lost with the process, and void when the attachment's version moves.
type Proof struct {
	Stage   ProofStage
	UID     string // of the VolumeAttachment
	Version string // of the VolumeAttachment when the proof began
}

// ProofStage is a step of the safe detach (DESIGN.md section 7).
type ProofStage uint8

const (
	// ProofNone: nothing proved.
	ProofNone ProofStage = iota
	// ProofUnreported: one write showed the volume neither in volumesInUse
	// nor, from then on, in volumesAttached.
	ProofUnreported
	// ProofUnwanted: a consistent list, made after that write, showed no
	// unfinished pod at the node that wants the volume.
	ProofUnwanted
)

func (s ProofStage) String() string { return [...]string{"none", "unreported", "unwanted"}[s] }

// Node is all that is known of one node. Read only outside this package.
type Node struct {
	NodeState              // InUse and Reported are empty here: see Place
	Exists    bool         // the Node object is there
	CSINode   bool         // the CSINode object is there
	CSIRev    string       // its version
	Drivers   []NodeDriver // in the order of their names
	At        []VolumeID   // volumes that have a Place here, sorted
	Tickets   []TicketID   // pending tickets for this node, sorted
	NotReady  time.Time    // since when it isn't ready, as this process saw it; zero when ready
	// SawFail says that this process saw the node ready before.
	SawFail  bool
	gen      uint64 // generation that may change this record
	reported int    // places with Reported
	inUse    int    // places with InUse
}

// NodeDriver is a driver's share of a node's slots.
type NodeDriver struct {
	DriverOnNode
	Registered bool // in the CSINode
	// Exhausted says that the driver refused an attach for want of room, and
	// neither the CSINode changed nor a slot came free since.
	Exhausted bool
	Used      int32 // places here of this driver's volumes
}

// Driver returns the node's entry for a driver. The zero entry, with no slot
// used and not registered, stands for a driver nothing is known of.
func (n *Node) Driver(name string) NodeDriver {
	if n != nil {
		if i, ok := n.driver(name); ok {
			return n.Drivers[i]
		}
	}
	return NodeDriver{DriverOnNode: DriverOnNode{Name: name, Limit: NoLimit}}
}

func (n *Node) driver(name string) (int, bool) {
	for i := range n.Drivers {
		if n.Drivers[i].Name == name {
			return i, true
		}
	}
	return 0, false
}

// Place returns the volume's place at a node, or nil.
func (v *Volume) Place(n NodeName) *Place {
	if v == nil {
		return nil
	}
	for i := range v.Places {
		if v.Places[i].Node == n {
			return &v.Places[i]
		}
	}
	return nil
}

// Own returns the attachment under the one name that the volume and the node
// lead to. Nil when there is none; others may exist, see Canonical.
func (p *Place) Own() *Attachment {
	if a := p.Canonical(); a != nil && a.own {
		return a
	}
	return nil
}

// Canonical returns the own attachment if there is one, else the first of the
// foreign ones. Nil when there is none at all.
func (p *Place) Canonical() *Attachment {
	if p == nil || len(p.Attachments) == 0 {
		return nil
	}
	return p.Attachments[0]
}

// claimRecord is a claim and who refers to it; the claim itself may be
// missing.
type claimRecord struct {
	Claim
	exists  bool
	pods    []string
	tickets []TicketID
	gen     uint64
}

// pvRecord is a PersistentVolume and who refers to it; it may be missing.
type pvRecord struct {
	PersistentVolume
	exists      bool
	claims      []ClaimKey
	tickets     []TicketID
	attachments []string
	gen         uint64
}

func (c *claimRecord) idle() bool { return !c.exists && len(c.pods) == 0 && len(c.tickets) == 0 }

func (p *pvRecord) idle() bool {
	return !p.exists && len(p.claims) == 0 && len(p.tickets) == 0 && len(p.attachments) == 0
}

// add returns s with v, without changing the array that s shares with older
// snapshots; drop likewise without v.
func add[T comparable](s []T, v T) []T {
	if slices.Contains(s, v) {
		return s
	}
	return append(slices.Clip(s), v)
}

func drop[T comparable](s []T, v T) []T {
	i := slices.Index(s, v)
	if i < 0 {
		return s
	}
	return removeAt(s, i)
}
