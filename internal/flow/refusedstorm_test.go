// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// storm plays the tickets of several nodes as the controller decides on them: side by side, and each request takes its
// time.
type storm struct {
	*player
	rng      *rand.Rand
	pauses   TicketPauses
	nodes    []ledger.NodeName
	touched  map[ledger.NodeName]bool
	busy     map[ledger.NodeName]int // writes under way
	air      []*flying
	holds    int // writes of holds
	statuses int // of tickets
}

// flying is a decision that is carried out, and when its request in flight is answered.
type flying struct {
	d    Decided
	task Task
	move Move
	at   time.Time
}

func newStorm() *storm {
	return &storm{
		player: newPlayer(), rng: rand.New(rand.NewPCG(1, 2)), touched: map[ledger.NodeName]bool{}, busy: map[ledger.NodeName]int{},
	}
}

func (s *storm) tell(events ...ledger.Event) {
	for _, e := range events {
		for _, n := range Wake(s.ledger.Apply(s.now, e), s.ledger.Snapshot()).Nodes {
			s.touched[n] = true
		}
	}
}

func (s *storm) left(k *ledger.Ticket) time.Duration { return s.pauses.Left(k, s.now) }

func (s *storm) spread(d time.Duration) time.Duration {
	return d - time.Duration(s.rng.Int64N(int64(d)/4+1))
}

// round decides on the tickets of a node.
func (s *storm) round(n ledger.NodeName) {
	list, again := Round(arbiter.Arbiter{}, s.ledger.Snapshot(), n, s.now, s.left)
	s.touched[n] = again
	s.tell(Announce(list)...)
	for _, d := range list {
		f := &flying{d: d}
		f.task, f.move = s.memory.Next(Decide(d), s.ledger.Snapshot(), s.now)
		s.busy[n]++
		s.follow(f)
	}
}

// follow takes in a move's tells, and sends its request.
func (s *storm) follow(f *flying) {
	s.tell(f.move.Tell...)
	if f.move.End != Going {
		s.pauses.End(f.d, f.move.End, s.spread, s.now)
		s.busy[f.d.Ticket.Node]--
		return
	}
	if f.at = s.now; f.move.Send.Do == PutHold || !f.says() {
		f.at = s.now.Add(time.Duration(5+s.rng.IntN(200)) * time.Millisecond)
	}
	s.air = append(s.air, f)
}

// says says whether a ticket's status already has the new content.
func (f *flying) says() bool {
	return f.move.Send.Phase == f.d.Ticket.Phase && string(f.move.Send.Verdict.First().Code) == f.d.Ticket.Reason
}

// answer answers the request in flight.
func (s *storm) answer(f *flying) {
	a, r := Answer{Result: Done}, f.move.Send
	switch {
	case r.Do == PutHold && s.refused[r.Volume]:
		s.holds++
		a.Result = Refused
	case r.Do == PutHold:
		s.holds++
		h, _ := r.Fact.(ledger.HoldSeen)
		h.Hold.Version = s.next()
		a.Facts = []ledger.Event{h}
	case r.Do == DecideTicket && !f.says():
		s.statuses++
		k := *f.d.Ticket
		k.Version, k.Phase, k.Granted, k.Reason = s.next(), r.Phase, r.Granted, string(r.Verdict.First().Code)
		a.Facts = []ledger.Event{k}
	}
	s.tell(a.Facts...)
	f.task, f.move = s.memory.Answer(f.task, a, s.ledger.Snapshot(), s.now)
	s.follow(f)
}

// run lets so much time pass.
func (s *storm) run(long time.Duration) {
	for until := s.now.Add(long); s.now.Before(until); s.now = s.now.Add(time.Millisecond) {
		for _, n := range s.nodes {
			if s.busy[n] == 0 && (s.touched[n] || s.now.UnixMilli()%50 == 0 && s.paused(n)) {
				s.round(n)
			}
		}
		for i := 0; i < len(s.air); {
			f := s.air[i]
			if f.at.After(s.now) {
				i++
				continue
			}
			s.air = slices.Delete(s.air, i, i+1)
			s.answer(f)
		}
	}
}

// paused says whether the pause of a ticket of a node is over.
func (s *storm) paused(n ledger.NodeName) bool {
	return slices.ContainsFunc(s.ledger.Snapshot().Node(n).Tickets, func(id ledger.TicketID) bool {
		k, known := s.pauses.tickets[id]
		return known && !k.until.After(s.now)
	})
}

// The API server refuses the hold of a volume for good, and tickets at six nodes ask for it. While one
// of them is tried, the others are informed that it has the volume, and are woken when it is refused.
// Each is tried once in a minute all the same, and told two things in that.
func TestTicketsOfARefusedHoldDontWakeEachOther(t *testing.T) {
	const nodes, minutes = 6, 10
	s := newStorm()
	s.refused = map[ledger.VolumeID]bool{disk: true}
	for i := range nodes {
		n := ledger.NodeName(fmt.Sprint("n", i+1))
		s.nodes = append(s.nodes, n)
		k := ticket(fmt.Sprint(i), string(n), ledger.TypeManual, "a")
		k.Created = int64(i)
		s.tell(ledger.NodeState{Name: n, UID: string(n), Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true},
			ledger.NodeDrivers{Node: n, Version: "2", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 1, NodeID: string(n)}}}, k)
	}
	s.tell(ledger.Complete{})
	s.run(minutes * time.Minute)
	s.holds, s.statuses = 0, 0
	s.run(minutes * time.Minute)
	if s.holds < nodes*(minutes-1) || s.holds > 2*nodes*minutes || s.statuses > 4*nodes*minutes {
		t.Errorf("in %d minutes the hold is tried %d times for %d tickets, and %d statuses are written", minutes, s.holds, nodes, s.statuses)
	}
}
