// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"fmt"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/flow"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// book is a Cache of a ledger alone.
type book struct{ *ledger.Ledger }

func (b book) Apply(e ledger.Event) { b.Ledger.Apply(time.Unix(1000, 0), e) }

func (b book) Ticket(ledger.TicketID) (*v1alpha1.VolumeTicket, bool) { return nil, false }

// A grant is left out, and decided on again, where something was granted or bound since its decision began at its
// node or of one of its volumes. The ledger knows of those that are not left out.
func TestGrantsSideBySide(t *testing.T) {
	a, b := ledger.VolumeID{Driver: "d", Handle: "a"}, ledger.VolumeID{Driver: "d", Handle: "b"}
	for name, test := range map[string]struct {
		before, since []counts
		mine          []ledger.VolumeID
		want          bool
	}{
		"nothing":                        {nil, nil, []ledger.VolumeID{a}, true},
		"before it began":                {[]counts{{"n", []ledger.VolumeID{a}}}, nil, []ledger.VolumeID{a}, true},
		"at its node":                    {nil, []counts{{"n", []ledger.VolumeID{b}}}, []ledger.VolumeID{a}, false},
		"its volume, at another node":    {nil, []counts{{"m", []ledger.VolumeID{b, a}}}, []ledger.VolumeID{a}, false},
		"another volume at another node": {nil, []counts{{"m", []ledger.VolumeID{b}}}, []ledger.VolumeID{a}, true},
		"claims that are not bound":      {nil, []counts{{"m", []ledger.VolumeID{{}}}}, []ledger.VolumeID{{}}, true},
		"too many to tell":               {nil, make([]counts, 3*maxRecent), []ledger.VolumeID{a}, false},
		"many, and none matters":         {make([]counts, 3*maxRecent), make([]counts, maxRecent), []ledger.VolumeID{a}, true},
	} {
		d, cache := &deciding{}, book{ledger.New()}
		k := ledger.Ticket{ID: ledger.TicketID{Namespace: "s", Name: "t"}, UID: "u", Version: "1", Type: ledger.TypeManual, Node: "n"}
		cache.Apply(k)
		note := func(list []counts) {
			for _, c := range list {
				d.add(c)
			}
		}
		note(test.before)
		began := d.began()
		note(test.since)
		s := cache.Snapshot()
		waits := flow.Decided{Ticket: s.Ticket(k.ID), Decision: flow.Decision{Ruling: flow.Wait}}
		grant := flow.Decided{Ticket: s.Ticket(k.ID), Decision: flow.Decision{Ruling: flow.Grant, Volumes: test.mine}}
		left, again := d.announce(cache, "n", began, []flow.Decided{waits, grant})
		if granting := cache.Snapshot().Ticket(k.ID).Granting; granting != test.want || again == test.want || (len(left) == 2) != test.want {
			t.Errorf("%s: granting %t, again %t, %d left", name, granting, again, len(left))
		}
		if next := d.began(); test.want && !d.overtaken(next-1, counts{"n", nil}) {
			t.Errorf("%s: the next decision does not know of it", name)
		}
	}
}

// Two decisions that began on the same facts do not both grant, nor do those of one round overtake each other.
func TestOneRoundGrantsTogether(t *testing.T) {
	d, cache := &deciding{}, book{ledger.New()}
	var decided []flow.Decided
	for i := range 3 {
		k := ledger.Ticket{ID: ledger.TicketID{Namespace: "s", Name: fmt.Sprint(i)}, UID: fmt.Sprint(i), Version: "1", Type: ledger.TypeManual, Node: "n"}
		cache.Apply(k)
		decided = append(decided, flow.Decided{Ticket: cache.Snapshot().Ticket(k.ID), Decision: flow.Decision{Ruling: flow.Grant, Volumes: []ledger.VolumeID{{Driver: "d", Handle: "a"}}}})
	}
	began := d.began()
	if left, again := d.announce(cache, "n", began, decided); len(left) != 3 || again {
		t.Errorf("of one round %d are left, again %t", len(left), again)
	}
	if left, again := d.announce(cache, "m", began, decided); len(left) != 0 || !again {
		t.Errorf("of another %d are left, again %t", len(left), again)
	}
}

// Decisions at two nodes are made side by side. Of two tickets there for one exclusive claim that is not
// bound yet only one is granted, also where one decision began before the other ticket was there: no
// hold keeps the two apart.
func TestGrantsOfAClaimSideBySide(t *testing.T) {
	cache := book{facts(
		ledger.NodeDrivers{Node: "n2", Version: "1", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 2}}},
		ledger.StorageClass{Name: "fast", Version: "1", Driver: driver, WaitForFirst: true},
		ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: "new"}, UID: "new", Version: "1", Class: "fast", Access: ledger.AccessNode},
	)}
	asks := func(name, node string, created int64) {
		p, k := pod(name, "", "new"), ticket(name, node, ledger.TypePod, "new")
		p.Created, k.Created, k.Volumes[0].ClaimUID = created, created, "new"
		cache.Apply(p)
		cache.Apply(k)
	}
	d := &deciding{}
	decide := func(n ledger.NodeName) (began int, decided []flow.Decided) {
		began = d.began()
		decided, _ = flow.Round(arbiter.Arbiter{}, cache.Snapshot(), n, now, nil)
		if len(decided) != 1 || decided[0].Ruling != flow.Grant {
			t.Fatalf("at %s: %+v", n, decided)
		}
		return began, decided
	}
	asks("second", "n2", 2)
	began2, at2 := decide("n2") // takes long: n2 has many tickets, say
	asks("first", "n1", 1)      // it ranks before
	began1, at1 := decide("n1")
	if left, again := d.announce(cache, "n1", began1, at1); len(left) != 1 || again {
		t.Fatalf("the first to be announced is left out: %+v", left)
	}
	if left, again := d.announce(cache, "n2", began2, at2); len(left) != 0 || !again {
		t.Errorf("one claim for one node is granted at n1 and at n2: %d left, again %t", len(left), again)
	}
	decided, _ := flow.Round(arbiter.Arbiter{}, cache.Snapshot(), "n2", now, nil)
	for _, one := range decided {
		if one.Ruling == flow.Grant {
			t.Errorf("decided on anew it is granted all the same: %+v", one) // then this test is about nothing
		}
	}
}
