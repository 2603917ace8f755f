// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// usage is what is known of whether a node uses a volume.
type usage uint8

const (
	// usageUnknown: nobody has said that can be believed. It frees nothing.
	usageUnknown usage = iota
	// usageInUse: the kubelet says so.
	usageInUse
	// usageStaged: the kubelet does not list it, and moorage-node has found it there, and has not
	// said since that it is gone.
	usageStaged
	// usageNone: the kubelet of this boot says that it is not in use.
	usageNone
	// usageFenced: a rule of force stands in for the kubelet's word.
	usageFenced
)

func (u usage) String() string {
	return [...]string{"unknown", "in use", "staged", "not in use", "fenced"}[u]
}

// evidence is what is known of a volume's use at a node, and by what.
type evidence struct {
	usage usage
	rule  forcing // the rule of force that is over, or will be first
}

// evidenceOf is the one place that answers whether a node uses a volume.
func (a Arbiter) evidenceOf(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume, now time.Time) evidence {
	n, e := s.Node(p.Node), evidence{rule: force(s, v, p, now)}
	switch {
	case e.rule.over():
		e.usage = usageFenced
	case n == nil || !n.Exists:
		e.usage = usageUnknown
	case !n.Reporting:
		e.usage = usageUnknown
	case Doubted(s, v, p):
		e.usage = a.usageInDoubt(s, v, p, now)
	case p.InUse:
		e.usage = usageInUse
	case staged(s, v, p, now):
		e.usage = usageStaged
	case !ready(n) && mayBeUnlisted(v, p):
		e.usage = usageUnknown
	default:
		e.usage = usageNone
	}
	return e
}

// mayBeUnlisted says whether the holder of a ticket may use the volume, as this process has seen or as the hold
// says. What the kubelet of a node that is not Ready has listed last does not tell: it lists what pods use.
func mayBeUnlisted(v *ledger.Volume, p *ledger.NodeVolume) bool {
	h := hold(v)
	return p.MayBeThere(v.ID) && (p.Unlisted || h.Node == p.Node && h.NamesTicket())
}

// usageInDoubt is what is known of the use of a volume of which the kubelet's list does not tell.
// Where moorage-node speaks of the very boot in which the volume may be mounted, nothing stands in the
// way of asking it: usageNone then lets a detach begin, which goes on only when it has
// looked twice and has found nothing (emptied). Nobody asks about what has no VolumeAttachment
// to delete, nor in Cooperative mode.
func (a Arbiter) usageInDoubt(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume, now time.Time) usage {
	n := s.Node(p.Node)
	switch {
	case !a.couldLook(s, v, p) || saysNothing(n, v.ID, now):
		return usageUnknown
	case n.Lists(v.ID, p):
		return usageInUse
	case n.SaysHas(v.ID) || n.MayBeUnstaged(v.ID):
		return usageStaged
	}
	return usageNone
}

// couldLook says whether moorage-node at a node, if it answers, can tell whether a volume in
// doubt is mounted there.
func (a Arbiter) couldLook(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume) bool {
	n := s.Node(p.Node)
	return !a.Cooperative && ready(n) && doubtedHere(s, v, p) && !v.ID.NoAttach() && p.HasOwn() && !p.Left
}

// ofAnotherMachine says whether the volume may be mounted at another machine than the one
// that has the node's name now, whose kubelet can't have forgotten it.
func ofAnotherMachine(n *ledger.Node, v *ledger.Volume, p *ledger.NodeVolume) bool {
	machine, _ := doubtedAt(n, v, p)
	return machine != "" && n != nil && n.SystemUUID != "" && machine != n.SystemUUID
}

// mayBeOfAnotherMachine says the same of a Node that names no machine yet, and of one whose boot
// is another one though the boot before is not over: several machines have that systemUUID.
func mayBeOfAnotherMachine(n *ledger.Node, v *ledger.Volume, p *ledger.NodeVolume) bool {
	machine, boot := doubtedAt(n, v, p)
	clone := n != nil && boot != "" && n.BootID != "" && boot != n.BootID
	return machine != "" && n != nil && (n.SystemUUID != machine || clone)
}

// doubtedAt is the machine at which the volume may be mounted, and its boot, as this process
// has seen or, where it has not, as the hold says; empty: not known.
func doubtedAt(n *ledger.Node, v *ledger.Volume, p *ledger.NodeVolume) (machine, boot string) {
	machine, boot = n.DoubtedAt(v.ID)
	if h := v.Hold; machine == "" && h != nil && h.Node == p.Node {
		return h.SystemUUID, h.BootID
	}
	return machine, boot
}

// doubtedHere says whether a volume in doubt would be mounted at the machine, and in the boot, that
// its Node names now, and nowhere else: not by what this process has seen, nor by what the hold says
// of its holder, or of a machine from which the volume was taken.
func doubtedHere(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume) bool {
	n := s.Node(p.Node)
	here := func(machine, boot string) bool {
		return machine != "" && boot != "" && machine == n.SystemUUID && boot == n.BootID
	}
	if machine, boot := doubtedAt(n, v, p); n == nil || !here(machine, boot) {
		return false
	}
	h := hold(v)
	f, fenced := v.Hold.Fence(p.Node)
	return (h.Node != p.Node || !s.GrantedBefore(&h) || here(h.SystemUUID, h.BootID)) && (!fenced || here(f.SystemUUID, f.BootID))
}

// Doubted says whether the node's list does not tell if the volume is in use: as this
// process has seen (ledger.Node.Doubts) or, where it began later, by what the hold says
// of the Node for which the volume was granted. One that was made again by the same
// boot, or has not said by which, may have the volume mounted, and not list it, or list
// it only as long as a pod is to use it. One that was made by another machine says nothing
// of the first one.
func Doubted(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume) bool {
	n, h := s.Node(p.Node), v.Hold
	if n.Doubts(v.ID) {
		return true
	}
	return n != nil && n.Exists && h != nil && h.Node == p.Node && p.MayBeMounted() && s.GrantedBefore(h)
}
