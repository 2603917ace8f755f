// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/test/proptest"
)

// Indexes and counts agree with the objects, without remains.
func TestBooks(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		b := drawBytes(t)
		l, s := New(), newStream(b)
		for now := start; b.more(); now = now.Add(time.Second) {
			e := s.event()
			switch b.below(20) {
			case 0:
				e = Complete{}
			case 1:
				e = TookOver{}
			}
			t.Logf("%T%+v", e, e)
			l.Apply(now, e)
			if want, got := workedOut(l), kept(l); want != got {
				t.Fatalf("after %T%+v:\n%s", e, e, lineDifference(want, got))
			}
			if at := slices.IsSortedFunc(l.refusals, func(a, b refusal) int { return a.at.Compare(b.at) }); !at {
				t.Fatalf("refusals are not in order: %v", l.refusals)
			}
			if b.below(10) == 0 {
				l.Snapshot() // its records belong to it
			}
		}
	})
}

type book map[string][]string

func (b book) add(page string, entry ...any) { b[page] = append(b[page], fmt.Sprint(entry...)) }

func (b book) String() string {
	var lines []string
	for page, entries := range b {
		slices.Sort(entries)
		lines = append(lines, page+": "+strings.Join(entries, " "))
	}
	return strings.Join(sorted(lines), "\n")
}

func kept(l *Ledger) string {
	b := book{}
	for c := range l.facts.claims.all() {
		page := "claim " + c.Key.String()
		b.add(page, "exists=", c.exists)
		for _, uid := range c.pods {
			b.add(page, "pod ", uid)
		}
		for _, id := range c.tickets {
			b.add(page, "ticket ", id)
		}
	}
	for pv := range l.facts.pvs.all() {
		page := "pv " + pv.Name
		b.add(page, "exists=", pv.exists)
		for _, key := range pv.claims {
			b.add(page, "claim ", key)
		}
		for _, id := range pv.tickets {
			b.add(page, "ticket ", id)
		}
		for _, v := range pv.outlived {
			b.add(page, "outlived by ", v)
		}
		for _, name := range pv.attachments {
			b.add(page, "attachment ", name)
		}
	}
	for u := range l.facts.unmatched.all() {
		page := fmt.Sprint("unmatched ", u.at)
		b.add(page)
		for _, name := range u.attachments {
			b.add(page, "attachment ", name)
		}
		for _, handle := range u.holds {
			b.add(page, "hold ", handle)
		}
	}
	for n := range l.facts.nodes.all() {
		b.add("node "+string(n.Name), "reported=", n.reported, " inUse=", n.inUse)
		for _, d := range n.Drivers {
			page := fmt.Sprintf("node %s driver %s", n.Name, d.Name)
			b.add(page, "used=", d.Used, " in order=", slices.IsSorted(slices.Collect(d.handles.all())))
			for h := range d.handles.all() {
				b.add(page, "handle ", h)
			}
		}
		if !slices.IsSortedFunc(n.Drivers, func(a, b NodeDriver) int { return cmp.Compare(a.Name, b.Name) }) {
			b.add("node "+string(n.Name), "drivers out of order")
		}
	}
	for v := range l.facts.volumes.all() {
		b.add(fmt.Sprintf("volume %q", v.ID))
		for i := range v.OnNodes {
			b.add(fmt.Sprintf("volume %q", v.ID), "at ", v.OnNodes[i].Node)
		}
		if !slices.IsSortedFunc(v.OnNodes, func(a, b VolumeOnNode) int { return cmp.Compare(a.Node, b.Node) }) {
			b.add(fmt.Sprintf("volume %q", v.ID), "places out of order")
		}
	}
	for z := range l.facts.zones.all() {
		if z.Nodes > 0 || z.lifted.IsZero() {
			b.add(fmt.Sprint("zone ", z.Zone), z.Nodes, " nodes, unreachable: ", z.Unreachable)
		}
	}
	for _, r := range l.refusals {
		if l.facts.nodes.get(r.node).Driver(r.driver).Exhausted {
			b.add("refused", r.node, "/", r.driver)
		}
	}
	return b.String()
}

func workedOut(l *Ledger) string {
	b := book{}
	workOutReferences(l, b)
	workOutPlaces(l, b)
	workOutZones(l, b)
	return b.String()
}

func (b book) once(page string, entry ...any) {
	if text := fmt.Sprint(entry...); !slices.Contains(b[page], text) {
		b[page] = append(b[page], text)
	}
}

func workOutReferences(l *Ledger, b book) {
	refer := func(ns, claim, pv, kind string, id any) {
		switch {
		case claim != "":
			b.once("claim "+ClaimKey{ns, claim}.String(), kind, " ", id)
		case pv != "":
			b.once("pv "+pv, kind, " ", id)
		}
	}
	for p := range l.facts.pods.all() {
		for _, v := range p.Volumes {
			refer(p.Namespace, v.Claim, "", "pod", p.UID)
		}
	}
	for t := range l.facts.tickets.all() {
		for _, v := range t.Volumes {
			refer(t.ID.Namespace, v.Claim, v.PersistentVolume, "ticket", t.ID)
		}
	}
	for c := range l.facts.claims.all() {
		if c.exists {
			b.once("claim "+c.Key.String(), "exists=true")
			refer("", "", c.PersistentVolume, "claim", c.Key)
		} else {
			b.once("claim "+c.Key.String(), "exists=false")
		}
	}
	for a := range l.facts.attachments.all() {
		at := driverNode{a.to.driver, a.to.node}
		if !a.at().IsReal() {
			b.once(fmt.Sprint("unmatched ", at))
			b.once(fmt.Sprint("unmatched ", at), "attachment ", a.name())
		}
		if !a.at().IsReal() || a.byName {
			b.once("pv "+a.pv, "attachment ", a.name())
		} else if pv := l.facts.pvs.get(a.pv); !a.inline && (pv == nil || pv.Volume != a.at()) {
			b.once("pv "+a.pv, "outlived by ", a.at())
		}
	}
	for pv := range l.facts.pvs.all() {
		b.once("pv "+pv.Name, "exists=", pv.exists)
	}
	for page, entries := range b { // a record of nothing is gone
		if len(entries) == 1 && entries[0] == "exists=false" {
			b.add(page, "should be gone")
		}
	}
}

func workOutZones(l *Ledger, b book) {
	zones := map[Zone]ZoneNodes{}
	for n := range l.facts.nodes.all() {
		off := n.Exists && (n.OutOfService || n.Shutdown)
		for _, f := range n.FencedAt {
			off = off || n.Exists && !f.Void
		}
		unreachable := n.Unreachable()
		if !n.Exists && (!unreachable || n.UID == "" || len(n.At()) == 0) || unreachable && off {
			continue
		}
		for _, at := range []Zone{{Region: n.Labels["topology.kubernetes.io/region"], Name: n.Labels["topology.kubernetes.io/zone"]}, {Whole: true}} {
			z := zones[at]
			z.Nodes, z.Unreachable = z.Nodes+1, z.Unreachable+int32(count(unreachable))
			zones[at] = z
		}
	}
	for at, z := range zones {
		b.add(fmt.Sprint("zone ", at), z.Nodes, " nodes, unreachable: ", z.Unreachable)
	}
}

func workOutPlaces(l *Ledger, b book) {
	for n := range l.facts.nodes.all() {
		reported, inUse := 0, 0
		used := map[string][]string{}
		for v := range l.facts.volumes.all() {
			if p := v.OnNode(n.Name); p != nil {
				reported, inUse = reported+count(p.Reported), inUse+count(p.InUse)
				used[v.ID.Driver] = append(used[v.ID.Driver], v.ID.Handle)
			}
		}
		b.add("node "+string(n.Name), "reported=", reported, " inUse=", inUse)
		for _, d := range n.Drivers {
			page := fmt.Sprintf("node %s driver %s", n.Name, d.Name)
			b.add(page, "used=", len(used[d.Name]), " in order=true")
			for _, h := range used[d.Name] {
				b.add(page, "handle ", h)
			}
			if d.Exhausted {
				b.add("refused", n.Name, "/", d.Name)
			}
		}
	}
	for v := range l.facts.volumes.all() {
		page := fmt.Sprintf("volume %q", v.ID)
		b.add(page)
		if len(v.OnNodes) == 0 && len(v.PVs()) == 0 && v.Hold == nil {
			b.add(page, "should be gone")
		}
		for i := range v.OnNodes {
			b.add(page, "at ", v.OnNodes[i].Node)
			if v.OnNodes[i].Empty() {
				b.add(page, "has an empty place")
			}
		}
		if at := (driverNode{v.ID.Driver, v.Hold.node()}); at.node != "" && v.OnNode(at.node) == nil {
			b.once(fmt.Sprint("unmatched ", at))
			b.add(fmt.Sprint("unmatched ", at), "hold ", v.ID.Handle)
		}
	}
}
