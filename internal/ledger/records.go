// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Volume has a volume's facts; read only outside this package.
type Volume struct {
	ID      VolumeID
	Access  Access         // most restrictive, see Ledger.access
	named   bool           // a PersistentVolume has named it and given Access
	OnNodes []VolumeOnNode // by node
	Hold    *Hold          // nil: no VolumeHold
	// HoldUnanswered counts unanswered writes since Hold was seen. 0: it was just as in the API.
	HoldUnanswered uint16

	dropped string    // version of the last hold that this process deleted
	noted   bool      // an attachment had a note
	earlier *earlier  // or nil
	left    *left     // or nil
	pvs     *[]string // or nil
	gen     uint64
}

// left is the observed end of a volume's last ended attachment.
type left struct {
	node NodeName
	at   time.Time
}

// Left returns when the attachment at a node was seen to end, if it was the volume's last.
func (v *Volume) Left(n NodeName) (time.Time, bool) {
	if v == nil || v.left == nil || v.left.node != n {
		return time.Time{}, false
	}
	return v.left.at, true
}

// PVs are, sorted, the volume's PersistentVolumes.
func (v *Volume) PVs() []string {
	if v.pvs == nil {
		return nil
	}
	return *v.pvs
}

func (v *Volume) setPVs(names []string) {
	v.pvs = nil
	if len(names) > 0 {
		v.pvs = &names
	}
}

// OnlyInline: no known PersistentVolume has named the volume; inline specs limit its nodes.
func (v *Volume) OnlyInline() bool { return v.pvs == nil && !v.named }

// SourceKnown: each attachment names a PersistentVolume of the volume or is inline; without attachments, a
// PersistentVolume names it. A pod's inline spec does not count: a tenant may name another's disk.
func (v *Volume) SourceKnown() bool {
	known := v.pvs != nil
	for i := range v.OnNodes {
		p := &v.OnNodes[i]
		if p.first == nil {
			continue
		}
		if known = !v.otherSource(p.first); !known || p.more != nil && slices.ContainsFunc(*p.more, v.otherSource) {
			return false
		}
	}
	return known
}

// attachedFor says whether the volume has an attachment made for a PersistentVolume that named it.
func (v *Volume) attachedFor(pv string) bool {
	if v == nil {
		return false
	}
	return slices.ContainsFunc(v.OnNodes, func(p VolumeOnNode) bool { return p.attachedFor(pv) })
}

func (p *VolumeOnNode) attachedFor(pv string) bool {
	is := func(r *attachmentRecord) bool { return r.pv == pv && r.byPV() }
	return p != nil && p.first != nil && (is(p.first) || p.more != nil && slices.ContainsFunc(*p.more, is))
}

// otherSource says whether an attachment was made for a PersistentVolume with another volume now.
func (v *Volume) otherSource(r *attachmentRecord) bool {
	return !r.inline && !slices.Contains(v.PVs(), r.pv)
}

// earlier is an earlier process's measure of a forced detach, and its reading.
type earlier struct {
	force Force
	read  time.Time
}

// Dropped is the version of the last empty VolumeHold that this process deleted, or empty.
func (v *Volume) Dropped() string { return v.dropped }

// Earlier returns a forced detach's progress at the hold's first sight, and that time, or Complete's, if
// later.
func (v *Volume) Earlier() (Force, time.Time) {
	if v.earlier == nil {
		return Force{}, time.Time{}
	}
	return v.earlier.force, v.earlier.read
}

// VolumeOnNode is a volume at a node.
type VolumeOnNode struct {
	Node     NodeName
	Users    []User
	Reported bool // in volumesAttached
	InUse    bool // in the last volumesInUse
	// Lapsed: Reported outlives its attachment.
	Lapsed bool
	// SawLeave: this process saw the last user leave: the idle time is exact.
	SawLeave bool
	// Sent: the own attachment's creation is sent, outcome unproved, see AttachSent.
	Sent bool
	// Left: the volume may be left here without an attachment (Hold.Stays).
	Left bool
	// Held: the hold gives a volume that needs no attachment to this node. Only the kubelet shows its
	// absence.
	Held bool
	// ReportSent: this process reported a volume that needs no attachment, without a later read of
	// volumesAttached.
	ReportSent bool
	// UnreportSent: a patch that removes a volume that needs no attachment from volumesAttached has an
	// unknown outcome. No pod is told that the volume is here.
	UnreportSent bool
	// CreateFailed: this process's last creation of the own attachment failed.
	CreateFailed bool
	// Unlisted: a ticket may have or have had the volume, for a process unknown to kubelets. It outlasts
	// the ticket until the node is known Ready since: by an own write or read (Unreported.Ready,
	// ReadyShown), or its kubelet's list while Ready.
	Unlisted bool
	// OnlyAsked: only waiting tickets without slots bind the volume here, see Ticket.KeepsSlots.
	OnlyAsked bool
	Proof     Proof

	first *attachmentRecord    // own, if any
	more  *[]*attachmentRecord // foreign, or nil
	odd   *odd                 // or nil
	idle  time.Duration        // since the epoch, see Snapshot.Idle; busy: users
}

// busy is the idle with users.
const busy = time.Duration(math.MinInt64)

// TakesSlot says whether the volume takes a driver's slot here; nil: none.
func (p *VolumeOnNode) TakesSlot() bool { return p != nil && !p.OnlyAsked }

// Empty: nothing binds the volume to the node.
func (p *VolumeOnNode) Empty() bool {
	if p.Sent {
		return false
	}
	if p.Left || p.WithoutAttachment() {
		return false
	}
	return p.unbound()
}

func (p *VolumeOnNode) unbound() bool {
	return p.first == nil && len(p.Users) == 0 && !p.Reported && !p.MayBeInUse()
}

// OnlyLeft: only a possible leftover binds the volume to the node.
func (p *VolumeOnNode) OnlyLeft() bool { return p != nil && p.Left && !p.Sent && p.unbound() }

// MayBeLeft: the volume may be left here without an attachment.
func (p *VolumeOnNode) MayBeLeft() bool { return p != nil && p.Left }

// OccupiesSlot: the volume keeps its slot by an attachment, a creation in flight, the node's lists, or as a
// leftover.
func (p *VolumeOnNode) OccupiesSlot() bool { return p.MayBeInUse() || p.OccupiesSlotWithoutUse() }

// MayBeInUse: the kubelet lists the volume, or its list does not tell.
func (p *VolumeOnNode) MayBeInUse() bool { return p.InUse || p.odd != nil && len(p.odd.unknown) > 0 }

// OccupiesSlotWithoutUse ignores the kubelet's volumesInUse.
func (p *VolumeOnNode) OccupiesSlotWithoutUse() bool {
	return p.HasAttachments() || p.Reported || p.Sent || p.Left
}

// WithoutAttachment: a volume that needs none may be here, by hold or a report.
func (p *VolumeOnNode) WithoutAttachment() bool { return p.Held || p.ReportSent }

// UnlistedBy is a present or ended ticket behind Unlisted, or nil.
func (p *VolumeOnNode) UnlistedBy() *Requester {
	if p.odd == nil {
		return nil
	}
	return p.odd.had
}

// SawUnknown are boots of possible mounts as only this process saw: see Unknown.
func (p *VolumeOnNode) SawUnknown() []Boot {
	if p == nil || p.odd == nil {
		return nil
	}
	return p.odd.unknown
}

// odd has rare facts apart, to save memory.
type odd struct {
	had     *Requester
	unknown []Boot
}

func (p *VolumeOnNode) setOdd(had *Requester, unknown []Boot) {
	if p.odd = nil; had != nil || len(unknown) > 0 {
		p.odd = &odd{had, unknown}
	}
}

func (p *VolumeOnNode) setUnknown(boots []Boot) { p.setOdd(p.UnlistedBy(), boots) }

// MayBeThere: the API shows the volume attached, by an attachment or, if it needs none, volumesAttached or
// WithoutAttachment; or it may be left here.
func (p *VolumeOnNode) MayBeThere(v VolumeID) bool {
	return p.HasAttachments() || p.Left || v.NoAttach() && (p.Reported || p.WithoutAttachment())
}

// User is a bound pod or a ticket.
type User struct {
	Pod    string // UID
	Ticket TicketID
}

// Proof is a detach's proved progress for the own attachment's present version. A restart or a new version
// voids it.
type Proof struct {
	Stage ProofStage
	// Forced: by a rule of force. Its end voids the proof: the node is Ready, another object or without its
	// out-of-service taint, or its kubelet is heard.
	Forced bool
	// Unstaged: moorage-node reported the volume (Named), then no longer, and no possible user came after
	// the first report.
	Named, Unstaged bool
	// Look is the last question's number since ProofUnreported's write; 0: none.
	Look int32
	// Again: an earlier look had found nothing, see Snapshot.Vacant.
	Again bool
	// vacant is 1 + the time since the epoch of the first empty look in a row; 0: none.
	vacant time.Duration
}

// ProofStage is a step of the safe detach (docs/internals/invariants.md, I3).
type ProofStage uint8

const (
	// ProofNone: nothing proved.
	ProofNone ProofStage = iota
	// ProofUnreported: a write showed the volume not in volumesInUse and, from then on, volumesAttached.
	ProofUnreported
	// ProofUnwanted: a consistent list after that write showed no unfinished pod that wants it.
	ProofUnwanted
)

func (s ProofStage) String() string { return [...]string{"none", "unreported", "unwanted"}[s] }

// Node has a node's facts; read only outside this package.
type Node struct {
	NodeState              // without InUse and Reported: see VolumeOnNode
	Exists    bool         // the Node object is there
	CSINode   bool         // the CSINode object is there
	CSIRev    string       // its version
	Drivers   []NodeDriver // by name
	Tickets   []TicketID   // pending, unordered
	// NotReady is since when this process saw it not Ready; zero: Ready. It counts only its own Node
	// object, from Complete.
	NotReady time.Time
	// SawFail: this process saw it Ready before.
	SawFail bool
	// Heard is the last seen kubelet write while not Ready: a renewed Lease, or Ready from Unknown to
	// False; for an own first state, its latest possible unseen write. Zero: never.
	Heard time.Time
	// OutOfServiceAt and ShutdownAt are the first sight of the taints, or zero.
	OutOfServiceAt, ShutdownAt time.Time
	// FencedAt has the first sight of each of Fenced.
	FencedAt []FencedAt
	// CutBefore are, sorted, a former machine's drivers of CutOff: no proof.
	CutBefore []string
	// Renewed is the last NodeLease.Renewed while not Ready, with its first read RenewedAt and its last
	// LeaseRead: between them the Lease stood still. Zero: unread in this outage.
	Renewed              int64
	RenewedAt, LeaseRead time.Time
	// UnreadSince is since when the Lease can't be read, or zero. Unread sums unread times above LongUnread
	// since the kubelet was heard; ReadAgain ends the last. A kubelet back in such a time was not heard.
	UnreadSince, ReadAgain time.Time
	Unread                 time.Duration

	// MachineAt is since when only the Node's present machine (systemUUID, providerID) was seen; zero:
	// unnamed.
	MachineAt time.Time

	// Word is moorage-node's report, or nil.
	Word *NodeWord
	// AskedAt is since when moorage-node owes an answer; zero: none.
	AskedAt time.Time
	// RefusedSince and RefusedAt bound the refusals of questions to moorage-node; zero after a permission.
	RefusedSince, RefusedAt time.Time

	last     Boot    // see LastBoot
	gen      uint64  // generation that may change this record
	inBulk   bool    // see Ledger.beginBulk
	reported int     // number of Reported
	inUse    int     // number of InUse
	counted  counted // see recount
}

// NodeDriver has a driver's slots at a node.
type NodeDriver struct {
	DriverOnNode
	Registered bool // in the CSINode
	// Exhausted: the driver refused an attach for lack of room, and since then no CSINode change, free slot
	// or end of time (RefusalsOver) came.
	Exhausted bool
	Used      int32 // VolumeOnNodes of this driver here
	Occupied  int32 // with OccupiesSlotWithoutUse
	OnlyAsked int32 // without a slot

	handles handles  // of its VolumeOnNodes here
	to      *machine // the CSINode's, to share
	noted   *machine // the same with the last note
}

// Taken counts the taken slots.
func (d NodeDriver) Taken() int32 { return d.Used - d.OnlyAsked }

// At lists, sorted, the volumes with a VolumeOnNode here.
func (n *Node) At() []VolumeID {
	var list []VolumeID
	for i := range n.Drivers {
		for handle := range n.Drivers[i].handles.all() {
			list = append(list, VolumeID{n.Drivers[i].Name, handle})
		}
	}
	return list
}

// Driver is the node's entry for a driver; zero: unknown.
func (n *Node) Driver(name string) NodeDriver {
	if n != nil {
		if i, ok := n.driver(name); ok {
			return n.Drivers[i]
		}
	}
	return unknownDriver(name)
}

func (n *Node) driver(name string) (int, bool) {
	return slices.BinarySearchFunc(n.Drivers, name, func(d NodeDriver, name string) int { return cmp.Compare(d.Name, name) })
}

// KeptDetached is the VolumeOnNode of tickets for no node, or nil. Its cost does not grow with the nodes.
func (v *Volume) KeptDetached() *VolumeOnNode {
	if v == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(v.OnNodes, Detached, func(p VolumeOnNode, n NodeName) int { return cmp.Compare(p.Node, n) })
	if !found {
		return nil
	}
	return &v.OnNodes[i]
}

// OnNode returns the volume's VolumeOnNode at a node, or nil.
func (v *Volume) OnNode(n NodeName) *VolumeOnNode {
	if v == nil {
		return nil
	}
	for i := range v.OnNodes {
		if v.OnNodes[i].Node == n {
			return &v.OnNodes[i]
		}
	}
	return nil
}

// HasAttachments: a VolumeAttachment binds the volume here.
func (p *VolumeOnNode) HasAttachments() bool { return p != nil && p.first != nil }

func (p *VolumeOnNode) UsedByPod() bool {
	return p != nil && slices.ContainsFunc(p.Users, func(u User) bool { return u.Pod != "" })
}

// HasOwn: an attachment has the derived name.
func (p *VolumeOnNode) HasOwn() bool { return p.HasAttachments() && p.first.own }

// AttachFailed: the driver refused the own attachment, and it is not attached since.
func (p *VolumeOnNode) AttachFailed() bool {
	return p.HasOwn() && !p.first.attached && p.first.odd != nil && !p.first.odd.attachError.IsZero()
}

// Attached: the first attachment is attached and stays, see Canonical.
func (p *VolumeOnNode) Attached() bool {
	return p.HasAttachments() && p.first.attached && !p.first.deleting
}

// Detaching: the first attachment (Canonical) is being deleted. That can't be undone.
func (p *VolumeOnNode) Detaching() bool {
	return p.HasAttachments() && p.first.deleting
}

// Transitions is the attachments' highest number.
func (p *VolumeOnNode) Transitions() int64 {
	most := int64(0)
	for _, r := range p.records() {
		most = max(most, r.transitions)
	}
	return most
}

// Own is the attachment with the derived name, or nil.
func (p *VolumeOnNode) Own() *Attachment {
	if !p.HasOwn() {
		return nil
	}
	return p.first.unpack()
}

// Canonical is the own attachment, else the first foreign; nil: none.
func (p *VolumeOnNode) Canonical() *Attachment {
	if p == nil {
		return nil
	}
	return p.first.unpack()
}

// AttachedFor is the first attachment made for a PersistentVolume, or empty.
func (p *VolumeOnNode) AttachedFor(pv string) string {
	if p == nil || p.first == nil {
		return ""
	}
	if p.first.pv == pv {
		return p.first.name()
	}
	if p.more != nil {
		for _, r := range *p.more {
			if r.pv == pv {
				return r.name()
			}
		}
	}
	return ""
}

// Attachments lists the own attachment, then others by name.
func (p *VolumeOnNode) Attachments() []*Attachment {
	var list []*Attachment
	for _, r := range p.records() {
		list = append(list, r.unpack())
	}
	return list
}

// claimRecord has references even to a missing claim.
type claimRecord struct {
	Claim
	exists  bool
	pods    []string
	tickets []TicketID
	gen     uint64
}

// pvRecord has references even to a missing PersistentVolume.
type pvRecord struct {
	PersistentVolume
	exists      bool
	claims      []ClaimKey
	tickets     []TicketID
	attachments []string // waiting for its sight
	// outlived are its former volumes that still have its attachments.
	outlived []VolumeID
	gen      uint64
}

func (c *claimRecord) idle() bool { return !c.exists && len(c.pods) == 0 && len(c.tickets) == 0 }

func (p *pvRecord) idle() bool {
	return !p.exists && len(p.claims) == 0 && len(p.tickets) == 0 && len(p.attachments) == 0 && len(p.outlived) == 0
}

// add and drop leave the shared array of s unchanged.
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
