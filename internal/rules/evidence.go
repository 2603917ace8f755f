// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
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

// evidenceOf is the only function that answers whether a node uses a volume. A volume has left a node if a
// rule of force holds (force), or if the kubelet's list is credible and omits it; otherwise it is in use.
func (a Arbiter) evidenceOf(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode, now time.Time) evidence {
	n, e := s.Node(p.Node), evidence{rule: force(s, v, p, now)}
	switch {
	case e.rule.over():
		e.usage = usageFenced
	case n == nil || !n.Exists, !n.Reporting:
		e.usage = usageUnknown
	case s.IsUnknown(v, p) && (!a.couldLook(s, v, p) || saysNothing(n, v.ID, now)):
		e.usage = usageUnknown
	case p.InUse:
		e.usage = usageInUse
	case s.IsUnknown(v, p):
		// A detach may begin. It continues only after moorage-node has looked twice (emptied).
		if e.usage = usageNone; n.SaysHas(v.ID) {
			e.usage = usageStaged
		}
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
func mayBeUnlisted(v *ledger.Volume, p *ledger.VolumeOnNode) bool {
	h := hold(v)
	return p.MayBeThere(v.ID) && (p.Unlisted || h.Node == p.Node && h.NamesTicket())
}

// couldLook says whether moorage-node at a node, if it answers, can tell whether an unknown volume is
// mounted: it runs in the only boot in which it may be. It is not asked in Cooperative mode, nor without a
// VolumeAttachment to delete.
func (a Arbiter) couldLook(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode) bool {
	return !a.Cooperative && ready(s.Node(p.Node)) && s.IsUnknownHere(v, p) && !v.ID.NoAttach() && p.HasOwn() && !p.Left
}

// ofAnotherMachine says whether an unknown volume may be mounted at an earlier machine of the node's name.
// The present machine's kubelet can't have forgotten that mount.
func ofAnotherMachine(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode) bool {
	n := s.Node(p.Node)
	return slices.ContainsFunc(s.Unknown(v, p), func(b ledger.Boot) bool { return b.IsOfAnother(n) })
}

// mayBeOfAnotherMachine is ofAnotherMachine for a Node that names no machine yet, or for several machines
// with the same systemUUID: the boot differs although the earlier boot is not over.
func mayBeOfAnotherMachine(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode) bool {
	n := s.Node(p.Node)
	return n != nil && slices.ContainsFunc(s.Unknown(v, p), func(b ledger.Boot) bool {
		return b.SystemUUID != "" && (b.SystemUUID != n.SystemUUID || b.BootID != "" && n.BootID != "" && b.BootID != n.BootID)
	})
}
