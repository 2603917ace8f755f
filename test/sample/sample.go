// SPDX-License-Identifier: Apache-2.0

// Package sample makes facts for tests of tickets: a node of two slots, another node, and three disks with
// their claims.
package sample

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

const Driver = "d"

var Now = time.Unix(1000, 0)

// Ledger has Ready nodes n1, of two slots, and n2, and disks a, b and c.
func Ledger(events ...ledger.Event) *ledger.Ledger {
	l := ledger.New()
	all := []ledger.Event{
		ledger.NodeState{Name: "n1", UID: "n", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true},
		ledger.NodeState{Name: "n2", UID: "n2", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true},
		ledger.NodeDrivers{Node: "n1", Version: "1", Drivers: []ledger.DriverOnNode{{Name: Driver, Limit: 2}}},
	}
	for _, h := range []string{"a", "b", "c"} {
		all = append(all,
			ledger.PersistentVolume{Name: h, Version: "1", Volume: ledger.VolumeID{Driver: Driver, Handle: h}, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "s", Name: h}},
			ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: h}, UID: h, Version: "1", PersistentVolume: h, Bound: true, Access: ledger.AccessNode})
	}
	for _, e := range append(all, events...) {
		l.Apply(Now, e)
	}
	return l
}

func Pod(name string, node ledger.NodeName, claims ...string) ledger.Pod {
	p := ledger.Pod{UID: "uid-" + name, Version: "1", Namespace: "s", Name: name, Node: node}
	for _, c := range claims {
		p.Volumes = append(p.Volumes, ledger.PodVolume{Name: c, Claim: c})
	}
	return p
}

func Ticket(name, node string, typ ledger.TicketType, claims ...string) ledger.Ticket {
	t := ledger.Ticket{ID: ledger.TicketID{Namespace: "s", Name: "uid-" + name}, UID: "t-" + name, Version: "1", Type: typ, Node: ledger.NodeName(node)}
	for _, c := range claims {
		t.Volumes = append(t.Volumes, ledger.TicketVolume{Claim: c})
	}
	return t
}
