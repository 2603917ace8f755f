// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"iter"
	"slices"
	"time"
)

// The labels of a Node that say where it is.
const (
	labelRegion = "topology.kubernetes.io/region"
	labelZone   = "topology.kubernetes.io/zone"
)

// Zone is a node's place by its labels; zero without them.
type Zone struct {
	Region, Name string
	Whole        bool // the whole cluster
}

// ZoneNodes counts the nodes of a zone, or of the whole cluster, without unreachable nodes known to be off
// or fenced.
type ZoneNodes struct {
	Zone
	Nodes       int32
	Unreachable int32 // see Node.Unreachable

	lifted time.Time // when this process last saw too many unreachable nodes end
}

// MaxUnreachablePercent is the share of a zone's or the cluster's nodes that may be unreachable while
// AfterUnreachable runs. At this share kube-controller-manager considers a zone disrupted
// (--unhealthy-zone-threshold).
const MaxUnreachablePercent = 55

// minUnreachable unreachable nodes are never too many (kubernetes pkg/controller/nodelifecycle,
// ComputeZoneState).
const minUnreachable = 2

// TooMany says whether too many nodes are unreachable for AfterUnreachable to run.
func (z *ZoneNodes) TooMany() bool {
	return z != nil && z.Unreachable > minUnreachable && int64(z.Unreachable)*100 > MaxUnreachablePercent*int64(z.Nodes)
}

// Zones iterates over the zones with nodes, and the whole cluster, unordered.
func (s Snapshot) Zones() iter.Seq[*ZoneNodes] { return s.facts.zones.all() }

// ZoneNodes are the numbers of a node's zone and of the cluster; nil where no node counts.
func (s Snapshot) ZoneNodes(n *Node) [2]*ZoneNodes {
	return [2]*ZoneNodes{s.facts.zones.get(n.zone()), s.facts.zones.get(Zone{Whole: true})}
}

// TooMany is the node's zone, or the cluster, with too many unreachable nodes. False: neither.
func (s Snapshot) TooMany(n *Node) (Zone, bool) {
	for _, z := range s.ZoneNodes(n) {
		if z.TooMany() {
			return z.Zone, true
		}
	}
	return Zone{}, false
}

// Lifted is the last end of too many unreachable nodes in a node's zone or the cluster; zero: this process
// saw none.
func (s Snapshot) Lifted(n *Node) time.Time {
	var at time.Time
	for _, z := range s.ZoneNodes(n) {
		if z != nil && z.lifted.After(at) {
			at = z.lifted
		}
	}
	return at
}

// zone is the node's present or last zone.
func (n *Node) zone() Zone {
	return Zone{Region: n.Labels[labelRegion], Name: n.Labels[labelZone]}
}

// leaseLasts is the default of KubeletConfiguration, nodeLeaseDurationSeconds. It is less than any
// AfterUnreachable: nodes that fall silent together all count before that time is over for the first.
const leaseLasts = 40 * time.Second

// Unreachable says whether the node's kubelet was not heard lately, without a clock, so that nodes can be
// counted. A renewed Lease outweighs the node controller's Ready=Unknown. A deleted Node counts if volumes
// may be there.
func (n *Node) Unreachable() bool {
	still := n.LeaseRead.Sub(n.RenewedAt) >= leaseLasts
	switch {
	case !n.Exists:
		return n.UID != "" && slices.ContainsFunc(n.Drivers, func(d NodeDriver) bool { return d.Used > 0 })
	case n.Ready == ReadyTrue:
		return false
	case n.Ready == ReadyFalse:
		return !n.RenewedAt.IsZero() && still
	}
	return n.Heard.IsZero() || !n.Heard.Equal(n.RenewedAt) || still
}

// explained says whether evidence explains a node's silence: it is off, or fenced.
func (n *Node) explained() bool {
	return n.Exists && (n.OutOfService || n.Shutdown || slices.ContainsFunc(n.FencedAt, func(f FencedAt) bool { return !f.Void }))
}

// counted is what a node adds to the numbers of its zone.
type counted struct {
	zone               Zone
	nodes, unreachable int32
}

func (n *Node) count() counted {
	switch unreachable := n.Unreachable(); {
	case unreachable && n.explained(), !unreachable && !n.Exists:
		return counted{}
	case unreachable:
		return counted{n.zone(), 1, 1}
	}
	return counted{n.zone(), 1, 0}
}

// recount updates the numbers of a changed node's zone. The record is owned.
func (l *Ledger) recount(now time.Time, t *Touched, n *Node) {
	was, is := n.counted, n.count()
	if was == is {
		return
	}
	n.counted = is
	nodes, unreachable := is.nodes-was.nodes, is.unreachable-was.unreachable
	if was.zone == is.zone {
		l.changeZone(now, t, is.zone, nodes, unreachable)
	} else {
		l.changeZone(now, t, was.zone, -was.nodes, -was.unreachable)
		l.changeZone(now, t, is.zone, is.nodes, is.unreachable)
	}
	l.changeZone(now, t, Zone{Whole: true}, nodes, unreachable)
}

// changeZone touches the volumes at the zone's unreachable nodes when "too many" changes.
func (l *Ledger) changeZone(now time.Time, t *Touched, zone Zone, nodes, unreachable int32) {
	if nodes == 0 && unreachable == 0 {
		return
	}
	was := l.facts.zones.get(zone)
	is := &ZoneNodes{Zone: zone}
	if was != nil {
		*is = *was
	}
	is.Nodes += nodes
	is.Unreachable += unreachable
	before, after := was.TooMany(), is.TooMany()
	if before && !after {
		is.lifted = now
	}
	if is.Nodes == 0 && is.lifted.IsZero() {
		l.facts.zones.del(l.gen, zone)
	} else {
		l.facts.zones.put(l.gen, zone, is)
	}
	if before != after {
		l.touchUnreachable(t, zone)
	}
}

// forgetLifted: before Complete, the first nodes may be the unreachable ones.
func (l *Ledger) forgetLifted() {
	var list []ZoneNodes
	for z := range l.facts.zones.all() {
		if !z.lifted.IsZero() {
			list = append(list, *z)
		}
	}
	for _, z := range list {
		z.lifted = time.Time{}
		l.facts.zones.put(l.gen, z.Zone, &z)
	}
}

// touchUnreachable looks at all nodes.
func (l *Ledger) touchUnreachable(t *Touched, zone Zone) {
	for n := range l.facts.nodes.all() {
		if (zone.Whole || n.zone() == zone) && n.Unreachable() {
			t.node(n.Name)
			t.Volumes = append(t.Volumes, n.At()...)
		}
	}
}
