// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"fmt"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
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
