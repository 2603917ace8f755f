// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func typed(tickets ...ledger.Ticket) ledger.Snapshot {
	l := ledger.New()
	apply := func(e ledger.Event) { l.Apply(queueTime, e) }
	for _, n := range []ledger.NodeName{"n1", "n2"} {
		apply(ledger.NodeState{Name: n, UID: string(n), Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
		apply(ledger.NodeDrivers{Node: n, Version: "1", Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: string(n), Limit: 1}}})
	}
	for _, t := range tickets {
		for _, v := range t.Volumes {
			apply(ledger.PersistentVolume{Name: v.PersistentVolume, UID: v.PersistentVolume, Version: "1", Access: ledger.AccessNode,
				Volume: ledger.VolumeID{Driver: "disk", Handle: v.PersistentVolume}})
		}
		apply(t)
	}
	return l.Snapshot()
}

func ofType(kind ledger.TicketType, name string, n ledger.NodeName, volume string) ledger.Ticket {
	t := ledger.Ticket{
		ID: ledger.TicketID{Namespace: "ns", Name: name}, UID: "uid-" + name, Version: "1", Type: kind, Node: n,
		Volumes: []ledger.TicketVolume{{PersistentVolume: volume}},
	}
	return t
}

// The order of types is Longhorn's, repeated here.
func TestEveryTypeAgainstEveryOther(t *testing.T) {
	first := []ledger.TicketType{ledger.TypeRestore, ledger.TypeExpansion}
	second := []ledger.TicketType{ledger.TypeManual, ledger.TypeSalvage, ledger.TypeShareManager, ledger.TypeUpgrade}
	last := []ledger.TicketType{ledger.TypeSnapshot, ledger.TypeBackup, ledger.TypeClone, ledger.TypeRebuild, ledger.TypeEviction, ledger.TypeLiveMigration}
	giveWay := last[:2]
	all := slices.Concat(first, second, last)
	if !slices.Equal(all, ledger.TicketTypes()) {
		t.Fatalf("the types are %v", ledger.TicketTypes())
	}
	group := func(kind ledger.TicketType) int {
		return slices.IndexFunc([][]ledger.TicketType{first, second, last}, func(g []ledger.TicketType) bool { return slices.Contains(g, kind) })
	}
	for _, has := range all {
		for _, asks := range all {
			holder, asker := ofType(has, "holder", "n1", "v"), ofType(asks, "asker", "n2", "v")
			holder.Phase = ledger.TicketGranted
			s := typed(holder, asker)
			v := Arbiter{}.Grant(s, s.Ticket(asker.ID), queueTime)
			if want := slices.Contains(giveWay, has) && group(asks) < 2; v.Allowed() != want {
				t.Errorf("%s has the volume, and %s may have it: %t (%v)", has, asks, v.Allowed(), v.Reasons)
			}
			older, newer := ofType(has, "b", "n1", "v"), ofType(asks, "a", "n1", "w")
			s = typed(older, newer)
			queue := Arbiter{}.Queue(s, "n1", queueTime)
			want := "a"
			if group(has) < group(asks) {
				want = "b"
			}
			for _, k := range queue.Tickets() {
				if v := queue.Grant(k); v.Allowed() != (k.ID.Name == want) {
					t.Errorf("%s and %s ask for one slot, and it is given to %s: %t", has, asks, k.Type, v.Allowed())
				}
			}
		}
	}
}
