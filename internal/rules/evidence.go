// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// usage is the known use of a volume at a node.
type usage uint8

const (
	// usageUnknown: there is no credible report. It frees nothing.
	usageUnknown usage = iota
	// usageInUse: the kubelet says so.
	usageInUse
	// usageStaged: the kubelet does not list it, but moorage-node found it there and has not reported since
	// that it is gone.
	usageStaged
	// usageNone: the kubelet of this boot says that it is not in use.
	usageNone
	// usageFenced: a rule of force overrides the kubelet.
	usageFenced
)

func (u usage) String() string {
	return [...]string{"unknown", "in use", "staged", "not in use", "fenced"}[u]
}

// evidence is the known use of a volume at a node, and its source.
type evidence struct {
	usage usage
	rule  forcing // the rule of force that holds, or will hold first
}

// evidenceOf is the only function that answers whether a node uses a volume.
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

// mayBeUnlisted says whether a ticket's holder may use the volume, as this process or the hold says. The
// last list of a node that is not Ready does not tell: a kubelet lists only pods' volumes.
func mayBeUnlisted(v *ledger.Volume, p *ledger.NodeVolume) bool {
	h := hold(v)
	return p.MayBeThere(v.ID) && (p.Unlisted || h.Node == p.Node && h.NamesTicket())
}

// usageInDoubt returns the use of a volume about which the kubelet's list does not tell. If moorage-node
// runs in the very boot in which the volume may be mounted, it can be asked: usageNone then lets a detach
// begin, which continues only after moorage-node has looked twice and found nothing (emptied). It is not
// asked in Cooperative mode, nor without a VolumeAttachment to delete.
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

// couldLook says whether moorage-node at a node, if it answers, can tell whether a doubted volume is
// mounted there.
func (a Arbiter) couldLook(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume) bool {
	n := s.Node(p.Node)
	return !a.Cooperative && ready(n) && doubtedHere(s, v, p) && !v.ID.NoAttach() && p.HasOwn() && !p.Left
}

// ofAnotherMachine says whether the volume may be mounted at an earlier machine of the node's name. The
// present machine's kubelet can't have forgotten that mount.
func ofAnotherMachine(n *ledger.Node, v *ledger.Volume, p *ledger.NodeVolume) bool {
	machine, _ := doubtedAt(n, v, p)
	return machine != "" && n != nil && n.SystemUUID != "" && machine != n.SystemUUID
}

// mayBeOfAnotherMachine is ofAnotherMachine for a Node that names no machine yet, or for several machines
// with the same systemUUID: the boot differs although the earlier boot is not over.
func mayBeOfAnotherMachine(n *ledger.Node, v *ledger.Volume, p *ledger.NodeVolume) bool {
	machine, boot := doubtedAt(n, v, p)
	clone := n != nil && boot != "" && n.BootID != "" && boot != n.BootID
	return machine != "" && n != nil && (n.SystemUUID != machine || clone)
}

// doubtedAt returns the machine and the boot in which the volume may be mounted, as this process saw them,
// or else as the hold says. Empty: unknown.
func doubtedAt(n *ledger.Node, v *ledger.Volume, p *ledger.NodeVolume) (machine, boot string) {
	machine, boot = n.DoubtedAt(v.ID)
	if h := v.Hold; machine == "" && h != nil && h.Node == p.Node {
		return h.SystemUUID, h.BootID
	}
	return machine, boot
}

// doubtedHere says whether a doubted volume would be mounted at the machine and in the boot of the present
// Node, and nowhere else. It takes into account what this process saw, and what the hold says of its holder
// and of machines from which the volume was taken.
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

// Doubted says whether a node's list does not tell if the volume is in use: this process saw it
// (ledger.Node.Doubts), or it began later and the hold's Node, for which the volume was granted, says so. A
// Node that was made again by the same boot, or that names no boot, may have the volume mounted and not
// list it, or list it only while a pod needs it. A Node of another machine says nothing of the first
// machine.
func Doubted(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume) bool {
	n, h := s.Node(p.Node), v.Hold
	if n.Doubts(v.ID) {
		return true
	}
	return n != nil && n.Exists && h != nil && h.Node == p.Node && p.MayBeMounted() && s.GrantedBefore(h)
}
