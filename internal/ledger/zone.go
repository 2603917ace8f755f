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

// Zone is where a node is, by its labels; zero for nodes without them.
type Zone struct {
	Region, Name string
	Whole        bool // no zone, but the whole cluster
}

// ZoneNodes counts the nodes of a zone, or of the whole cluster. An unreachable node that is known to
// be off or fenced counts in neither number.
type ZoneNodes struct {
	Zone
	Nodes       int32
	Unreachable int32 // the unreachable nodes among them, see Node.Unreachable

	lifted []lifted
}

// lifted is when a bound was last exceeded in a zone, as this process saw it end.
type lifted struct {
	bound MaxUnreachable
	at    time.Time
}

// MaxUnreachable is how many nodes may be unreachable at once while a policy's AfterUnreachable runs. The
// zero value stops it above minUnreachable.
type MaxUnreachable struct {
	Percent int32 // of a zone's nodes, and of the whole cluster's; 100: any share
	Nodes   int32 // of a zone; 0: any number
}

// DefaultMaxUnreachable is the default bound: the share at which kube-controller-manager considers a zone
// disrupted (--unhealthy-zone-threshold).
func DefaultMaxUnreachable() MaxUnreachable { return MaxUnreachable{Percent: 55} }

// minUnreachable is the number of unreachable nodes that is never too large a share (kubernetes
// pkg/controller/nodelifecycle, ComputeZoneState).
const minUnreachable = 2

// Stricter is exceeded if either of two bounds is.
func (m MaxUnreachable) Stricter(other MaxUnreachable) MaxUnreachable {
	if m.Nodes == 0 || other.Nodes != 0 && other.Nodes < m.Nodes {
		m.Nodes = other.Nodes
	}
	m.Percent = min(m.Percent, other.Percent)
	return m
}

// parts are a bound's parts, one for each number.
func (m MaxUnreachable) parts() [2]MaxUnreachable {
	return [2]MaxUnreachable{{Percent: m.Percent}, {Percent: 100, Nodes: m.Nodes}}
}

// Exceeds says whether more nodes are unreachable than a bound permits.
func (z *ZoneNodes) Exceeds(m MaxUnreachable) bool {
	switch {
	case z == nil:
		return false
	case m.Nodes > 0 && !z.Whole && z.Unreachable > m.Nodes:
		return true
	}
	return z.Unreachable > minUnreachable && int64(z.Unreachable)*100 > int64(m.Percent)*int64(z.Nodes)
}

// liftedAt is when a bound was last exceeded in the zone; zero: never, as far as this process
// has seen it end.
func (z *ZoneNodes) liftedAt(m MaxUnreachable) time.Time {
	var at time.Time
	if z == nil {
		return at
	}
	for _, part := range m.parts() {
		for _, l := range z.lifted {
			if l.bound == part && l.at.After(at) {
				at = l.at
			}
		}
	}
	return at
}

// Zones iterates over the zones with nodes, and the whole cluster, unordered.
func (s Snapshot) Zones() iter.Seq[*ZoneNodes] { return s.facts.zones.all() }

// ZoneNodes are the numbers of a node's zone and of the whole cluster; nil where no node
// counts.
func (s Snapshot) ZoneNodes(n *Node) [2]*ZoneNodes {
	return [2]*ZoneNodes{s.facts.zones.get(n.zone()), s.facts.zones.get(Zone{Whole: true})}
}

// Exceeded is the zone of a node, or the whole cluster, where more nodes are unreachable than
// a bound permits. False: neither.
func (s Snapshot) Exceeded(n *Node, m MaxUnreachable) (Zone, bool) {
	for _, z := range s.ZoneNodes(n) {
		if z.Exceeds(m) {
			return z.Zone, true
		}
	}
	return Zone{}, false
}

// Lifted is when a bound was last exceeded in a node's zone or the whole cluster; zero: never,
// as far as this process has seen it end.
func (s Snapshot) Lifted(n *Node, m MaxUnreachable) time.Time {
	zones := s.ZoneNodes(n)
	at := zones[0].liftedAt(m)
	if whole := zones[1].liftedAt(m); whole.After(at) {
		return whole
	}
	return at
}

// zone is where the node is, or was.
func (n *Node) zone() Zone {
	return Zone{Region: n.Labels[labelRegion], Name: n.Labels[labelZone]}
}

// leaseLasts is the default duration of a kubelet's Lease without renewal (KubeletConfiguration,
// nodeLeaseDurationSeconds). It is less than any time of AfterUnreachable: nodes that fall silent together
// all count before that time is over for one.
const leaseLasts = 40 * time.Second

// Unreachable says whether the node's kubelet was not heard lately: the condition for a policy's
// AfterUnreachable, without a clock, so that nodes can be counted. The node controller says so
// (Ready=Unknown), unless the Lease is seen to be renewed; or the node is not Ready by its own word, and
// its Lease stands still; or its Node is deleted, and volumes may be there.
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

// recount updates the numbers of a node's zone after a change. The record is owned.
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

// changeZone adds to the numbers of a zone, notes which bounds are no longer exceeded there, and
// touches the volumes at its unreachable nodes when that changes.
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
	crossed, bounds := false, l.facts.bounds()
	is.lifted = slices.DeleteFunc(slices.Clone(is.lifted), func(e lifted) bool { return !slices.Contains(bounds, e.bound) })
	for _, bound := range bounds {
		before, after := was.Exceeds(bound), is.Exceeds(bound)
		crossed = crossed || before != after
		if before && !after {
			is.lifted = slices.DeleteFunc(is.lifted, func(e lifted) bool { return e.bound == bound })
			is.lifted = append(is.lifted, lifted{bound, now})
		}
	}
	if is.Nodes == 0 && len(is.lifted) == 0 {
		l.facts.zones.del(l.gen, zone)
	} else {
		l.facts.zones.put(l.gen, zone, is)
	}
	if crossed {
		l.touchUnreachable(t, zone)
	}
}

// forgetLifted forgets when bounds were exceeded: before Complete, the first nodes may be the unreachable
// ones.
func (l *Ledger) forgetLifted() {
	var list []ZoneNodes
	for z := range l.facts.zones.all() {
		if len(z.lifted) > 0 {
			list = append(list, *z)
		}
	}
	for _, z := range list {
		z.lifted = nil
		l.facts.zones.put(l.gen, z.Zone, &z)
	}
}

// bounds are the policies' bounds; none if no policy has a time that they stop.
func (w *facts) bounds() []MaxUnreachable {
	var list []MaxUnreachable
	timed := false
	add := func(m MaxUnreachable) {
		for _, part := range m.parts() {
			if !slices.Contains(list, part) {
				list = append(list, part)
			}
		}
	}
	add(DefaultMaxUnreachable())
	for p := range w.policies.all() {
		timed = timed || runs(p.AfterUnreachable) || p.NetworkFence.Class != "" && runs(p.NetworkFence.After)
		if p.MaxUnreachable != nil {
			add(*p.MaxUnreachable)
		}
	}
	if !timed {
		return nil
	}
	return list
}

func runs(after *time.Duration) bool { return after != nil && *after >= 0 }

// touchUnreachable touches the volumes at the unreachable nodes of a zone. It looks at all nodes.
func (l *Ledger) touchUnreachable(t *Touched, zone Zone) {
	for n := range l.facts.nodes.all() {
		if (zone.Whole || n.zone() == zone) && n.Unreachable() {
			t.node(n.Name)
			t.Volumes = append(t.Volumes, n.At()...)
		}
	}
}
