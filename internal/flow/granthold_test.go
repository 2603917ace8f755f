// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// lookAt decides on the tickets of n1, and plays the rest: all writes of holds come to an end, and all
// tickets are written. It returns how many writes of holds there were.
func (p *player) lookAt(t *testing.T, n ledger.NodeName, holds Result) (writes int) {
	t.Helper()
	list, _ := Round(arbiter.Arbiter{}, p.ledger.Snapshot(), n, p.now, nil)
	for _, e := range Announce(list) {
		p.ledger.Apply(p.now, e)
	}
	for _, d := range list {
		writes += p.carryOut(t, Decide(d), holds)
	}
	return writes
}

// carryOut plays a decision on a ticket as lookAt says.
func (p *player) carryOut(t *testing.T, task Task, holds Result) (writes int) {
	t.Helper()
	task, m := p.memory.Next(task, p.ledger.Snapshot(), p.now)
	for m.End == Going {
		a := Answer{Result: Done}
		switch {
		case m.Send.Do == PutHold:
			writes++
			if a.Result = holds; p.refused[m.Send.Volume] {
				a.Result = Refused
			} else if p.busy {
				a.Result = NotSent
			}
			if h, _ := m.Send.Fact.(ledger.HoldSeen); a.Result == Done {
				h.Hold.Version = p.next()
				a.Facts = []ledger.Event{h}
			}
		case m.Send.Do == DecideTicket && (m.Send.Phase != task.Ticket.Phase || string(m.Send.Verdict.First().Code) != task.Ticket.Reason):
			k := *task.Ticket
			k.Version, k.Phase, k.Granted = p.next(), m.Send.Phase, m.Send.Granted
			k.Reason = string(m.Send.Verdict.First().Code)
			a.Facts = []ledger.Event{k}
		}
		for _, e := range append(m.Tell, a.Facts...) {
			p.ledger.Apply(p.now, e)
		}
		task, m = p.memory.Answer(task, a, p.ledger.Snapshot(), p.now)
	}
	for _, e := range m.Tell {
		p.ledger.Apply(p.now, e)
	}
	return writes
}

// next is a version that nothing has yet.
func (p *player) next() string {
	p.version++
	return strconv.Itoa(1000 + p.version)
}

// A webhook answers each write of a hold with 500. Tickets ask for a volume that a bound pod has at the same node. The
// plan of the volume waits until no write can have an effect, and reads the hold. No grant has it wait longer, and
// each ticket is told why it waits, and granted when the webhook is mended.
func TestGrantsLeaveADoubtToThePlan(t *testing.T) {
	a := arbiter.Arbiter{}
	p := newPlayer(node("1"), pod("p", "n1", "a"), ledger.Complete{},
		ledger.NodeDrivers{Node: "n1", Version: "2", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 2, NodeID: "x"}}})
	p.settle(t, a, disk, "1")
	p.ledger.Apply(p.now, attachment("5"))
	for i := range 8 {
		p.ledger.Apply(p.now, ticket(fmt.Sprint("q", i), "n1", ledger.TypeManual, "a"))
	}
	if p.lookAt(t, "n1", Unknown) == 0 || p.ledger.Snapshot().Volume(disk).HoldUnanswered == 0 {
		t.Fatal("no grant is in doubt")
	}
	write := stepOf(p.plan(a, disk), arbiter.WriteHold)
	if write == nil {
		t.Fatalf("the hold is not written again: %v", p.plan(a, disk))
	}
	p.throughTheWait(t, Do(*write), func() {
		if writes := p.lookAt(t, "n1", Unknown); writes > 0 {
			t.Errorf("grants write a hold in doubt: %d times", writes)
		}
		if k := p.ledger.Snapshot().Ticket(ticket("q7", "n1", ledger.TypeManual).ID); k.Reason != string(arbiter.NotGranted) {
			t.Errorf("ticket %s waits, and its reason is %q", k.ID, k.Reason)
		}
	})
	if stepOf(p.plan(a, disk), arbiter.Report) == nil {
		t.Errorf("the volume of the bound pod is not put into volumesAttached: %v", p.plan(a, disk))
	}
	for range 8 {
		p.lookAt(t, "n1", Done)
	}
	for i := range 8 {
		if k := p.ledger.Snapshot().Ticket(ticket(fmt.Sprint("q", i), "n1", ledger.TypeManual).ID); k.Phase != ledger.TicketGranted {
			t.Errorf("ticket %s is %s (%s) when the webhook is mended", k.ID, k.Phase, k.Reason)
		}
	}
}

// throughTheWait plays the write of a hold that gets no answer, and the read that follows. Between, others act.
func (p *player) throughTheWait(t *testing.T, task Task, others func()) {
	t.Helper()
	task, m := p.memory.Next(task, p.ledger.Snapshot(), p.now)
	for m.End == Going {
		for _, e := range m.Tell {
			p.ledger.Apply(p.now, e)
		}
		others()
		switch {
		case !m.Wait.IsZero():
			p.now = m.Wait
			task, m = p.memory.Next(task, p.ledger.Snapshot(), p.now)
		case m.Send.Do == GetObject:
			a := Answer{Result: NotFound}
			if v := p.ledger.Snapshot().Volume(disk); v.Hold != nil {
				a = Answer{Result: Done, Facts: []ledger.Event{ledger.HoldSeen{Volume: disk, Hold: *v.Hold}}}
			}
			task, m = p.memory.Answer(task, a, p.ledger.Snapshot(), p.now)
		default:
			task, m = p.memory.Answer(task, Answer{Result: Unknown}, p.ledger.Snapshot(), p.now)
		}
	}
	for _, e := range m.Tell {
		p.ledger.Apply(p.now, e)
	}
}

// Only a ticket needs the hold, and its creation gets no answer. The ticket says so, and the plan of the volume ends
// the doubt: by a write, or by a read where that gets no answer either. Then the ticket is granted.
func TestPlanEndsTheDoubtOfATicketAlone(t *testing.T) {
	a := arbiter.Arbiter{}
	for name, again := range map[string]Result{"a write is answered": Done, "no write is answered": Unknown} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(ticket("q", "n1", ledger.TypeManual, "a"), ledger.Complete{})
			id := ticket("q", "n1", ledger.TypeManual).ID
			p.lookAt(t, "n1", Unknown)
			d := decided(p, id)
			if d.Ruling != Wait || d.Verdict.First().Code != arbiter.NotGranted || !strings.Contains(d.Verdict.First().Message(), "has not answered a write of its VolumeHold") {
				t.Fatalf("while the hold is in doubt: ruling %d, %s", d.Ruling, d.Verdict.First().Message())
			}
			if again == Done {
				p.settle(t, a, disk, "1")
			} else {
				p.throughTheWait(t, Do(*stepOf(p.plan(a, disk), arbiter.WriteHold)), func() {})
			}
			if p.lookAt(t, "n1", Done); p.ledger.Snapshot().Ticket(id).Phase != ledger.TicketGranted {
				t.Errorf("it is not granted: %s", decided(p, id).Verdict.First().Message())
			}
		})
	}
}

// A ticket asks for two volumes. The hold of the first is written, and then the API server refuses the
// hold of the second, or the ticket's status. The first hold is taken back, the ticket gets the cause
// of its wait if possible, and the next in rank gets the first volume.
func TestRefusedGrantGivesItsHoldsBack(t *testing.T) {
	a, id, first := arbiter.Arbiter{}, ticket("p", "n1", ledger.TypeManual).ID, ledger.VolumeID{Driver: driver, Handle: "a"}
	told := func(d Decided) reply {
		k := *d.Ticket
		k.Version, k.Reason = "2", string(arbiter.HoldRefused)
		return replies(Done, k)
	}
	for name, test := range map[string]struct {
		then func(Decided) []reply // the moves after the write of the first hold
		tell bool
	}{
		"the second hold is refused":                {func(d Decided) []reply { return []reply{replies(Refused), told(d)} }, true},
		"the second hold and the status is refused": {func(Decided) []reply { return []reply{replies(Refused), replies(Refused)} }, false},
		"the status is refused":                     {func(Decided) []reply { return []reply{replies(Done), replies(Refused)} }, false},
		"the second hold gets no answer":            {func(Decided) []reply { return []reply{replies(Unknown)} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(ticket("p", "n1", ledger.TypeManual, "a", "b"), ledger.Complete{}, pod("q", "", "a"),
				ledger.NodeDrivers{Node: "n2", Version: "2", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 4, NodeID: "n2"}}})
			for i := range 3 {
				p.refusedGrant(t, id, first, test.then, i)
			}
			if k := p.ledger.Snapshot().Ticket(id); (k.Reason == string(arbiter.HoldRefused)) != test.tell {
				t.Errorf("the ticket's reason is %q", k.Reason)
			}
			q := ticket("q", "n2", ledger.TypeManual, "a")
			q.Created = -5
			p.ledger.Apply(p.now, q)
			if d := decided(p, q.ID); d.Ruling != Grant {
				t.Errorf("the pod's ticket: ruling %d, %s", d.Ruling, d.Verdict.First().Message())
			}
			if given := p.settle(t, a, first, strconv.Itoa(900)); given.Node != "" || len(given.Requesters) > 0 {
				t.Errorf("the hold still gives the volume to %v at %s", given.Requesters, given.Node)
			}
		})
	}
}

// refusedGrant plays a grant whose first hold is written, in the i-th case.
func (p *player) refusedGrant(t *testing.T, id ledger.TicketID, first ledger.VolumeID, then func(Decided) []reply, i int) {
	t.Helper()
	d := decided(p, id)
	if d.Ruling == Wait { // the second hold is in doubt
		return
	}
	if len(d.Holds) != 2 || d.Holds[0].Volume != first {
		t.Fatalf("ruling %d, holds %v", d.Ruling, d.Holds)
	}
	h := d.Holds[0].Hold
	h.Version = strconv.Itoa(100 + i)
	p.play(t, p.announced(d), append([]reply{replies(Done, ledger.HoldSeen{Volume: first, Hold: h})}, then(d)...)...)
}
