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
	// usageUnknown: no credible report. It frees nothing.
	usageUnknown usage = iota
	// usageInUse: the kubelet says so.
	usageInUse
	// usageStaged: not in the kubelet's list, but found by moorage-node and not reported gone since.
	usageStaged
	// usageNone: the kubelet of this boot does not use it.
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
	rule  forcing // holds, or will hold first
}

// evidenceOf alone answers whether a node uses a volume. It does, unless a rule of force holds, or the
// kubelet's list is credible and omits it.
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
		// A detach may begin. It continues after moorage-node has looked twice (emptied).
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

// mayBeUnlisted says whether a ticket's holder may use the volume. A kubelet lists only pods' volumes.
func mayBeUnlisted(v *ledger.Volume, p *ledger.VolumeOnNode) bool {
	h := hold(v)
	return p.MayBeThere(v.ID) && (p.Unlisted || h.Node == p.Node && h.NamesTicket())
}

// couldLook says whether moorage-node runs in the only boot in which an unknown volume may be mounted. It
// is not asked in Cooperative mode, nor without a VolumeAttachment to delete.
func (a Arbiter) couldLook(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode) bool {
	return !a.Cooperative && ready(s.Node(p.Node)) && s.IsUnknownHere(v, p) && !v.ID.NoAttach() && p.HasOwn() && !p.Left
}

// ofAnotherMachine: the present kubelet can't have forgotten an earlier machine's mount.
func ofAnotherMachine(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode) bool {
	n := s.Node(p.Node)
	return slices.ContainsFunc(s.Unknown(v, p), func(b ledger.Boot) bool { return b.IsOfAnother(n) })
}

// mayBeOfAnotherMachine also covers a Node without a named machine, and machines with one systemUUID: the
// boot differs although the earlier boot is not over.
func mayBeOfAnotherMachine(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode) bool {
	n := s.Node(p.Node)
	return n != nil && slices.ContainsFunc(s.Unknown(v, p), func(b ledger.Boot) bool {
		return b.SystemUUID != "" && (b.SystemUUID != n.SystemUUID || b.BootID != "" && n.BootID != "" && b.BootID != n.BootID)
	})
}
