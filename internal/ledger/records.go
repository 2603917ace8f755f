// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Volume has all facts of a volume. Read only outside this package.
type Volume struct {
	ID      VolumeID
	Access  Access         // the most restrictive of its PersistentVolumes', see Ledger.access
	named   bool           // a PersistentVolume has named it: Access is from the last of them
	OnNodes []VolumeOnNode // in the order of their nodes
	Hold    *Hold          // nil: no VolumeHold
	// HoldUnanswered is the number of unanswered writes of Hold since it was seen: it may be out of date.
	// 0: it is, or was a moment ago, as in the API.
	HoldUnanswered uint16

	dropped string    // the version of the hold that this process deleted last
	noted   bool      // an attachment of it had a note
	earlier *earlier  // see Earlier; nil: nothing
	left    *left     // see Left; nil: none
	pvs     *[]string // see PVs; nil: none
	gen     uint64
}

// left is when and where a volume's last ended attachment was seen to end.
type left struct {
	node NodeName
	at   time.Time
}

// Left returns when this process saw the end of the attachment at a node, if that was the volume's last
// ended one.
func (v *Volume) Left(n NodeName) (time.Time, bool) {
	if v == nil || v.left == nil || v.left.node != n {
		return time.Time{}, false
	}
	return v.left.at, true
}

// PVs are the names of the PersistentVolumes that name the volume, sorted.
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

// OnlyInline says whether no PersistentVolume has named the volume, as far as this process knows: only the
// pods' inline specs say how many nodes it may serve.
func (v *Volume) OnlyInline() bool { return v.pvs == nil && !v.named }

// SourceKnown says whether the source of the volume's attachments is known: each names a PersistentVolume
// of the volume, or has an inline source. Without attachments: whether a PersistentVolume names it. A pod's
// inline spec does not count: a tenant may name another's disk.
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

// earlier is an earlier process's measure of a forced detach, and when this one has read it.
type earlier struct {
	force Force
	read  time.Time
}

// Dropped is the version of the empty VolumeHold that this process deleted last; empty: none.
func (v *Volume) Dropped() string { return v.dropped }

// Earlier returns the progress of a forced detach when this process first saw the hold, and when that was,
// or when it reached Complete, if later.
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
	Reported bool // in the node's volumesAttached
	InUse    bool // in the node's volumesInUse, as last reported
	// Lapsed says that Reported is old: its attachment is gone, and the node still reports it.
	Lapsed bool
	// SawLeave says that this process saw the last user leave: the idle time is exact, and no earlier
	// process measured before it.
	SawLeave bool
	// Sent says that this process has sent the creation of the own attachment, without a proof of the
	// outcome yet: see AttachSent.
	Sent bool
	// Left says that the volume may have been left here without an attachment:
	// the hold says so (Hold.Stays).
	Left bool
	// Held says that the hold gives the volume, which needs no attachment (VolumeID.NoAttach), to this
	// node: only the kubelet's word shows its absence.
	Held bool
	// ReportSent says that this process has sent a report of the volume here, which needs no attachment
	// (VolumeID.NoAttach), and that no later read has shown volumesAttached.
	ReportSent bool
	// UnreportSent says that this process has sent, or is about to send, a patch that takes the volume,
	// which needs no attachment, out of volumesAttached, with an unknown outcome: no pod is told that the
	// volume is here.
	UnreportSent bool
	// CreateFailed says that this process's last creation of the own attachment made none.
	CreateFailed bool
	// Unlisted says that a ticket has or had the volume here, or may have had it, as far as a later leader
	// knows: its holder may be a process unknown to kubelets and to volumesInUse. It lasts after the
	// ticket's end until the node is known to have been Ready since: by the answer to an own write or read
	// (Unreported.Ready, ReadyShown), or if its kubelet lists the volume while Ready.
	Unlisted bool
	// OnlyAsked says that only tickets that wait and keep no slot bind the volume to the node: see
	// Ticket.KeepsSlots.
	OnlyAsked bool
	Proof     Proof

	first *attachmentRecord    // the own one, if there is one
	more  *[]*attachmentRecord // foreign ones, beside first; nil: none
	odd   *odd                 // see UnlistedBy and SawUnknown; nil: neither
	idle  time.Duration        // since the ledger's epoch, see Snapshot.Idle; busy: it has users
}

// busy is the idle of a VolumeOnNode with users.
const busy = time.Duration(math.MinInt64)

// TakesSlot says whether the volume takes a slot of its driver at the node. A volume that is not there
// takes none.
func (p *VolumeOnNode) TakesSlot() bool { return p != nil && !p.OnlyAsked }

// Empty says whether nothing binds the volume to the node any more.
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

// OnlyLeft says whether the volume is bound to the node only because it may have been left there.
func (p *VolumeOnNode) OnlyLeft() bool { return p != nil && p.Left && !p.Sent && p.unbound() }

// MayBeLeft says whether the volume may have been left at the node without an attachment.
func (p *VolumeOnNode) MayBeLeft() bool { return p != nil && p.Left }

// OccupiesSlot says whether the volume keeps its slot at the node without requests: by an attachment, or a
// creation in flight; by the node's own lists; or because it may have been left there.
func (p *VolumeOnNode) OccupiesSlot() bool { return p.MayBeInUse() || p.OccupiesSlotWithoutUse() }

// MayBeInUse says whether the kubelet lists the volume, or this process saw that its list does not tell.
func (p *VolumeOnNode) MayBeInUse() bool { return p.InUse || p.odd != nil && len(p.odd.unknown) > 0 }

// OccupiesSlotWithoutUse is OccupiesSlot without the kubelet's volumesInUse.
func (p *VolumeOnNode) OccupiesSlotWithoutUse() bool {
	return p.HasAttachments() || p.Reported || p.Sent || p.Left
}

// WithoutAttachment says whether the volume, which needs no attachment, may be here: the hold says so,
// or it was about to enter volumesAttached.
func (p *VolumeOnNode) WithoutAttachment() bool { return p.Held || p.ReportSent }

// UnlistedBy is a ticket for which the volume is Unlisted, also after the ticket's end; nil: the volume
// is not.
func (p *VolumeOnNode) UnlistedBy() *Requester {
	if p.odd == nil {
		return nil
	}
	return p.odd.had
}

// SawUnknown are the boots in which the volume may be mounted, as far as only this process saw: see Unknown.
func (p *VolumeOnNode) SawUnknown() []Boot {
	if p == nil || p.odd == nil {
		return nil
	}
	return p.odd.unknown
}

// odd has the facts of few VolumeOnNodes, apart from the others for the sake of memory.
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

// MayBeThere says whether the API shows the volume of this VolumeOnNode as attached at the node: by an
// attachment, or if it needs none by volumesAttached or WithoutAttachment; or it may have been left there.
func (p *VolumeOnNode) MayBeThere(v VolumeID) bool {
	return p.HasAttachments() || p.Left || v.NoAttach() && (p.Reported || p.WithoutAttachment())
}

// User is a pod bound to a node or a ticket for it; one of the two is set.
type User struct {
	Pod    string // UID
	Ticket TicketID
}

// Proof is the proved progress of a detach of the own attachment in its present version. It is lost
// with the process, and void when the attachment's version changes.
type Proof struct {
	Stage ProofStage
	// Forced says that it was obtained by a rule of force, not by the kubelet's word. It is void when the
	// rule ends: the node is Ready, is another object or loses its out-of-service taint, or its kubelet is
	// heard.
	Forced bool
	// Unstaged says that moorage-node first reported the volume and later no longer, and that this process
	// saw no possible user come after the first report. Named says that the first report came.
	Named, Unstaged bool
	// Look is the number of this process's last question to the node since the write of ProofUnreported; 0:
	// none yet.
	Look int32
	// Again says that this process asked for that look after an earlier one had found nothing; see
	// Snapshot.Vacant.
	Again bool
	// vacant is one more than the time from the ledger's epoch until this process heard of a look that
	// found nothing, with no later look that found something; 0: none.
	vacant time.Duration
}

// ProofStage is a step of the safe detach (docs/internals/invariants.md, I3).
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

// Node has all facts of a node. Read only outside this package.
type Node struct {
	NodeState              // InUse and Reported are empty here: see VolumeOnNode
	Exists    bool         // the Node object is there
	CSINode   bool         // the CSINode object is there
	CSIRev    string       // its version
	Drivers   []NodeDriver // in the order of their names
	Tickets   []TicketID   // pending tickets for this node, in no order
	// NotReady is since when it isn't Ready, as this process saw it; zero when Ready. It counts only its
	// own Node object, once that was seen, and nothing before Complete.
	NotReady time.Time
	// SawFail says that this process saw the node ready before.
	SawFail bool
	// Heard is when this process last saw the kubelet write while the node was not Ready: it renewed its
	// Lease, or changed Ready from Unknown to False; or, if the first state was its own, until when it may
	// have written unseen. Zero: never.
	Heard time.Time
	// OutOfServiceAt and ShutdownAt are when this process first saw those taints; zero
	// without them.
	OutOfServiceAt, ShutdownAt time.Time
	// FencedAt is, for each of Fenced, when this process first saw it.
	FencedAt []FencedAt
	// CutBefore are the drivers of CutOff from a former machine of the Node, sorted: they prove nothing
	// about the present machine.
	CutBefore []string
	// Renewed is NodeLease.Renewed at the last read since the node is not Ready; RenewedAt is when this
	// process first read that value, and LeaseRead when it last read it: the Lease stood still between the
	// two. All are zero if the Lease was not read in this outage.
	Renewed              int64
	RenewedAt, LeaseRead time.Time
	// UnreadSince is when the Lease was last read, or the node became not Ready, if it can't be read since;
	// zero: it can. Unread is the sum of times without a read, each longer than LongUnread, since the
	// kubelet was last heard; ReadAgain is the end of the last. A kubelet that came back in such a time was
	// not heard.
	UnreadSince, ReadAgain time.Time
	Unread                 time.Duration

	// MachineAt is since when the Node names its present machine, by its systemUUID and providerID, as this
	// process saw it: no other machine of the node's name was seen since. Zero: it names none.
	MachineAt time.Time

	// Word is moorage-node's report; nil: none.
	Word *NodeWord
	// AskedAt is since when moorage-node owes an answer, as this process saw it; zero: it
	// owes none.
	AskedAt time.Time
	// RefusedSince is since when the API server refuses questions to moorage-node, and RefusedAt its last
	// refusal; both are zero once it permits one.
	RefusedSince, RefusedAt time.Time

	last     Boot    // see LastBoot
	gen      uint64  // the generation that may change this record
	inBulk   bool    // many volumes come or go: see Ledger.beginBulk
	reported int     // VolumeOnNodes with Reported
	inUse    int     // VolumeOnNodes with InUse
	counted  counted // in its zone, see recount
}

// NodeDriver is a driver's slots at a node.
type NodeDriver struct {
	DriverOnNode
	Registered bool // in the CSINode
	// Exhausted says that the driver refused an attach for want of room, and that since then the CSINode
	// did not change, no slot came free, and the time is not over (RefusalsOver).
	Exhausted bool
	Used      int32 // VolumeOnNodes here of this driver's volumes
	Occupied  int32 // volumes that OccupiesSlotWithoutUse
	OnlyAsked int32 // volumes without a slot: see VolumeOnNode.OnlyAsked

	handles handles  // of the volumes that have a VolumeOnNode here
	to      *machine // as the CSINode says, for attachments to share
	noted   *machine // likewise, with the last note
}

// Taken is the number of taken slots.
func (d NodeDriver) Taken() int32 { return d.Used - d.OnlyAsked }

// At lists the volumes that have a VolumeOnNode at the node, sorted.
func (n *Node) At() []VolumeID {
	var list []VolumeID
	for i := range n.Drivers {
		for handle := range n.Drivers[i].handles.all() {
			list = append(list, VolumeID{n.Drivers[i].Name, handle})
		}
	}
	return list
}

// Driver returns the node's entry for a driver. The zero entry, unregistered and without used slots, is an
// unknown driver's.
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

// KeptDetached is the VolumeOnNode with the tickets that want the volume at no node, or nil. Its cost
// does not depend on the number of nodes.
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

// VolumeOnNode returns the volume's VolumeOnNode at a node, or nil.
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

// HasAttachments says whether any VolumeAttachment binds the volume here.
func (p *VolumeOnNode) HasAttachments() bool { return p != nil && p.first != nil }

func (p *VolumeOnNode) UsedByPod() bool {
	return p != nil && slices.ContainsFunc(p.Users, func(u User) bool { return u.Pod != "" })
}

// HasOwn says whether there is an attachment with the name that follows from volume and node.
func (p *VolumeOnNode) HasOwn() bool { return p.HasAttachments() && p.first.own }

// AttachFailed says whether the driver has refused the own attachment, and it is not attached since.
func (p *VolumeOnNode) AttachFailed() bool {
	return p.HasOwn() && !p.first.attached && p.first.odd != nil && !p.first.odd.attachError.IsZero()
}

// Attached says whether the first attachment is attached and stays: see Canonical.
func (p *VolumeOnNode) Attached() bool {
	return p.HasAttachments() && p.first.attached && !p.first.deleting
}

// Detaching says whether the first attachment is being deleted, so that the volume leaves the node in
// any event: a deletion can't be undone. See Canonical.
func (p *VolumeOnNode) Detaching() bool {
	return p.HasAttachments() && p.first.deleting
}

// Transitions is the highest number of transitions in the attachments.
func (p *VolumeOnNode) Transitions() int64 {
	most := int64(0)
	for _, r := range p.records() {
		most = max(most, r.transitions)
	}
	return most
}

// Own returns the attachment with the name that follows from volume and node, or nil; others may exist, see
// Canonical.
func (p *VolumeOnNode) Own() *Attachment {
	if !p.HasOwn() {
		return nil
	}
	return p.first.unpack()
}

// Canonical returns the own attachment, or else the first foreign one; nil: none.
func (p *VolumeOnNode) Canonical() *Attachment {
	if p == nil {
		return nil
	}
	return p.first.unpack()
}

// AttachedFor names the first attachment made for a PersistentVolume; empty: none.
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

// Attachments lists the attachments: the own one first, then by name.
func (p *VolumeOnNode) Attachments() []*Attachment {
	var list []*Attachment
	for _, r := range p.records() {
		list = append(list, r.unpack())
	}
	return list
}

// claimRecord is a claim with its references; the claim itself may be missing.
type claimRecord struct {
	Claim
	exists  bool
	pods    []string
	tickets []TicketID
	gen     uint64
}

// pvRecord is a PersistentVolume with its references; it may be missing.
type pvRecord struct {
	PersistentVolume
	exists      bool
	claims      []ClaimKey
	tickets     []TicketID
	attachments []string // that wait for it to be seen
	// outlived are former volumes of it with attachments that were made for it.
	outlived []VolumeID
	gen      uint64
}

func (c *claimRecord) idle() bool { return !c.exists && len(c.pods) == 0 && len(c.tickets) == 0 }

func (p *pvRecord) idle() bool {
	return !p.exists && len(p.claims) == 0 && len(p.tickets) == 0 && len(p.attachments) == 0 && len(p.outlived) == 0
}

// add returns s with v, and drop without v, without a change of the array that s shares with older
// snapshots.
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
