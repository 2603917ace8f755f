// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strconv"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestBlockersOfManyUsers(t *testing.T) {
	facts := []ledger.Event{
		dataAt("lives", "dead", ledger.PodLive), dataAt("leaves", "dead", ledger.PodTerminating),
		asksAt("granted", ledger.TypeManual, "dead", grantedNow),
		asksAt("told", ledger.TypeManual, "dead", func(k *ledger.Ticket) { k.Reason = string(HeldElsewhere) }),
	}
	const asking = 2 * fewUsers
	for i := range asking { // the youngest has the first name
		facts = append(facts, asksAt("t"+strconv.Itoa(10+i), ledger.TypeManual, "dead", func(k *ledger.Ticket) { k.Created = int64(asking - i) }))
	}
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree}, append(facts, alive)...)
	q := Arbiter{}.Queue(p.snapshot, "well", auditTime)
	for range 2 { // the second time they are known
		for created, want := range map[int64]int{1: 0, 2: 1, 6: 5, asking: fewUsers} {
			r := needing("d/h")
			r.Created = created
			var names []string
			for _, u := range q.blockers(p.at("dead"), r) {
				names = append(names, u.Pod+u.Ticket.Name)
			}
			stay := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name[0] == 't' })
			if slices.Sort(stay); !slices.Equal(stay, []string{"granted", "leaves", "lives"}) || len(names) != len(stay)+want {
				t.Errorf("created at %d: %q, want %d that ask", created, names, want)
			}
			for i, name := range names[len(names)-min(want, len(names)):] {
				if name != "t"+strconv.Itoa(10+asking-1-i) {
					t.Errorf("created at %d: %q are not those that rank first", created, names)
				}
			}
		}
	}
}

// Each is decided on by itself.
func TestGrantOfWhoIsInDoubt(t *testing.T) {
	of := func(name, pv string, created int64) ledger.Event {
		return asksAt(name, ledger.TypeManual, "well", func(k *ledger.Ticket) { k.Created, k.Volumes = created, []ledger.TicketVolume{{PersistentVolume: pv}} })
	}
	pv := func(name string) ledger.Event {
		return ledger.PersistentVolume{Name: name, Version: "1", Volume: ledger.VolumeID{Driver: "d", Handle: name}, Access: ledger.AccessNode}
	}
	one := ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 1}}}
	for name, doubt := range map[string]bool{"pending": false, "in doubt": true} {
		facts := []ledger.Event{alive, one, pv("a"), pv("b"), of("first", "a", 1), of("last", "b", 2)}
		if doubt {
			facts = append(facts, ledger.TicketInDoubt{ID: ledger.TicketID{Namespace: "shop", Name: "first"}, UID: "first"})
		}
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, facts...)
		q := Arbiter{}.Queue(p.snapshot, "well", auditTime)
		for _, k := range []struct {
			name string
			want ledger.Code
		}{{"first", ""}, {"last", NoFreeSlot}} {
			v := q.Grant(p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: k.name}))
			if v.First().Code != k.want || v.Allowed() != (k.want == "") {
				t.Errorf("%s: ticket %s: %+v, want %q", name, k.name, v, k.want)
			}
		}
	}
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{})
	unseen := ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "unseen"}, Type: ledger.TypeManual, Node: "nowhere", Volumes: []ledger.TicketVolume{{Claim: "data"}}}
	if v := (Arbiter{}).Grant(p.snapshot, &unseen, auditTime); v.First().Code != NodeMissing || v.First().Node != "nowhere" {
		t.Errorf("at a node that nobody knows: %+v", v)
	}
}

// A possibly granted ticket does not count for MaxWaiting. Tickets that are left out may ask for missing
// volumes.
func TestHowManyAreDecidedOn(t *testing.T) {
	id := func(i int) ledger.TicketID { return ledger.TicketID{Namespace: "shop", Name: strconv.Itoa(1000 + i)} }
	facts := []ledger.Event{alive}
	for i := range MaxWaiting + 2 {
		facts = append(facts, asksAt(id(i).Name, ledger.TypeManual, "well", func(k *ledger.Ticket) { k.Volumes = []ledger.TicketVolume{{Claim: "nothing"}} }))
	}
	facts = append(facts, ledger.TicketInDoubt{ID: id(0), UID: id(0).Name})
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, facts...)
	q := Arbiter{}.Queue(p.snapshot, "well", auditTime)
	for i := range MaxWaiting + 2 {
		if left := i > MaxWaiting; q.behind[id(i)] != left {
			t.Errorf("ticket %d of %d is left out: %t", i+1, MaxWaiting+2, !left)
		}
	}
}
