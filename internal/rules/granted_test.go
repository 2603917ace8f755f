// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
)

type mover struct{ first, second ledger.VolumeID }

func (mover) key() ledger.ClaimKey { return ledger.ClaimKey{Namespace: "ns", Name: "data"} }

func (mover) id() ledger.TicketID { return ledger.TicketID{Namespace: "ns", Name: "mover"} }

func (m mover) leadsTo(v ledger.VolumeID, version string) []ledger.Event {
	pv := ledger.PersistentVolume{Name: "pv-" + v.Handle, UID: "pv-" + v.Handle, Version: version, Volume: v, Access: ledger.AccessNode, Claim: m.key(), ClaimUID: v.Handle}
	return []ledger.Event{ledger.ClaimGone{Key: m.key()}, pv, ledger.Claim{Key: m.key(), UID: v.Handle, Version: version, PersistentVolume: pv.Name, Bound: true, Access: ledger.AccessNode}}
}

func (m mover) asks(version string, phase ledger.TicketPhase, granted ...ledger.VolumeID) []ledger.Event {
	return []ledger.Event{ledger.Ticket{ID: m.id(), UID: "t", Version: version, Type: ledger.TypeClone, Node: "n0", Volumes: []ledger.TicketVolume{{Claim: "data"}}, Phase: phase, Granted: granted}}
}

func (m mover) ledger(now time.Time, events ...[]ledger.Event) *ledger.Ledger {
	l := ledger.New()
	for _, n := range []ledger.NodeName{"n0", "n1"} {
		l.Apply(now, ledger.NodeState{Name: n, UID: string(n), Version: "1", Ready: ledger.ReadyTrue, Managed: true, BootID: "b", SystemUUID: string(n), Reporting: true})
		l.Apply(now, ledger.NodeDrivers{Node: n, Version: "1", Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: string(n), Limit: 4}}})
	}
	for _, e := range slices.Concat(events...) {
		l.Apply(now, e)
	}
	l.Apply(now, ledger.Complete{})
	return l
}

func TestTicketUsesWhatItWasGranted(t *testing.T) {
	m := mover{ledger.VolumeID{Driver: "disk", Handle: "first"}, ledger.VolumeID{Driver: "disk", Handle: "second"}}
	for name, c := range map[string]struct {
		events [][]ledger.Event
		want   ledger.VolumeID
		keeps  bool
	}{
		"a relist leaves out that the grant was taken in between": {[][]ledger.Event{
			m.leadsTo(m.first, "2"), m.asks("5", ledger.TicketGranted, m.first), m.leadsTo(m.second, "20"), m.asks("24", ledger.TicketGranted, m.second),
		}, m.second, true},
		"the claim is made again while the grant is under way": {[][]ledger.Event{
			m.leadsTo(m.first, "2"), m.asks("4", ledger.TicketPending), m.leadsTo(m.second, "6"), m.asks("8", ledger.TicketGranted, m.first),
		}, m.first, false},
		"the watch of claims is behind": {[][]ledger.Event{
			m.leadsTo(m.first, "2"), m.asks("21", ledger.TicketPending), m.asks("24", ledger.TicketGranted, m.second), m.leadsTo(m.second, "25"),
		}, m.second, true},
		"the claim leads to storage that needs no attachment": {[][]ledger.Event{
			m.leadsTo(m.first, "2"), m.asks("5", ledger.TicketGranted, m.first), m.leadsTo(ledger.VolumeID{}, "20"),
		}, m.first, false},
		"an earlier release granted it": {[][]ledger.Event{
			m.leadsTo(m.first, "2"), m.asks("5", ledger.TicketGranted), m.leadsTo(m.second, "20"),
		}, m.first, false},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			s := m.ledger(now, c.events...).Snapshot()
			if at := s.TicketAt(m.id()); !slices.Equal(at, []ledger.VolumeID{c.want}) {
				t.Errorf("it uses %v, want %v", at, c.want)
			}
			ticket := s.Ticket(m.id())
			if v := (rules.Arbiter{}).Keeps(s, ticket, now); v.Allowed() != c.keeps {
				t.Errorf("it keeps its grant: %s", because(v))
			}
			if v := (rules.Arbiter{}).Satisfied(s, ticket, now); !c.keeps && v.First().Code != rules.ClaimMissing {
				t.Errorf("it is satisfied: %s", because(v))
			}
			if task, due := protocol.Due(rules.Arbiter{}, s, ticket, rules.Arbiter{}.Keeps(s, ticket, now), now); due == c.keeps || due && task.Commit.Phase != ledger.TicketPending {
				t.Errorf("due: %v, to %v", due, task.Commit.Phase)
			}
		})
	}
}
