// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

// lockStep decides everything on the same facts, and writes afterwards.
func (c *cluster) lockStep(again bool) bool {
	s, did := c.snapshot(), false
	type decided struct {
		task protocol.Task
		ok   bool
	}
	var due []decided
	for _, id := range c.ticketOrder() {
		t := s.Ticket(id)
		task, ok := protocol.Due(c.arb, s, t, c.arb.Keeps(s, t, c.Now), c.Now)
		due = append(due, decided{task, ok})
	}
	for _, d := range due {
		did = d.ok && c.carry(d.task) == protocol.Finished || did
	}
	if again {
		s = c.snapshot()
	}
	line := c.arb.Line(s, nil, c.Now)
	for _, n := range c.nodes() {
		list := protocol.Round(line.At(n), s, c.Now, nil, nil)
		c.announce(list)
		for _, d := range list {
			if d.Ruling == protocol.Wait && d.Ticket.Reason == string(d.Verdict.First().Code) {
				continue
			}
			did = c.carry(protocol.Decide(d)) == protocol.Finished || did
		}
	}
	for _, v := range c.volumes() {
		for _, step := range c.arb.Plan(c.snapshot(), v, c.Now).Steps {
			_ = c.do(step) // a failed step is planned again
			did = true
		}
	}
	for _, name := range slices.Clone(c.Keys(world.Attachments)) {
		did = c.attacher(name) || did
	}
	for _, id := range sortedKeys(c.Machines) {
		did = c.tick(c.Machines[id]) || did
	}
	return did
}

func (c *cluster) nodes() []ledger.NodeName {
	names := []ledger.NodeName{ledger.Detached}
	for _, n := range list[ledger.NodeState](c, world.Nodes) {
		names = append(names, n.Name)
	}
	return names
}

func crowd(seed int64) *script {
	r := rand.New(rand.NewSource(seed))
	s := newScript()
	s.arb = rules.Arbiter{Hurried: true}
	nodes := 2 + r.Intn(3)
	for i := range nodes {
		s.command(fmt.Sprintf("node n%d driver=disk limit=%d", i, 1+r.Intn(3)))
	}
	claims := 2 + r.Intn(4)
	for i := range claims {
		s.command(fmt.Sprintf("pv pv-%d claim=c%d access=%s", i, i, []string{"RWO", "RWO", "RWO", "RWX"}[r.Intn(4)]))
	}
	for i := range r.Intn(3) {
		s.command(fmt.Sprintf("pv pv-x%d claim=x%d", i, i))
		s.command(fmt.Sprintf("pod p%d claim=x%d", i, i))
		s.command(fmt.Sprintf("bind p%d node=n%d", i, r.Intn(nodes)))
	}
	types := ledger.TicketTypes()
	for i := range 2 + r.Intn(5) {
		where := "wherever"
		switch r.Intn(8) {
		case 0:
			where = fmt.Sprintf("node=n%d", r.Intn(nodes))
		case 1:
			where = "detached"
		}
		var of []string
		for range 1 + r.Intn(3) {
			of = append(of, fmt.Sprintf("c%d", r.Intn(claims)))
		}
		kind := types[r.Intn(len(types))]
		s.command(fmt.Sprintf("ticket t%d type=%s %s claims=%s age=%d", i, kind, where, strings.Join(of, ","), r.Intn(3)))
	}
	return s
}

func TestPlacedTicketsComeToRest(t *testing.T) {
	for seed := range int64(1500) {
		for name, round := range map[string]func(*script) bool{
			"in lock-step":        func(s *script) bool { return s.lockStep(false) },
			"in two steps":        func(s *script) bool { return s.lockStep(true) },
			"one after the other": func(s *script) bool { return s.round() },
		} {
			s := crowd(seed)
			for range 2 {
				if !rests(s, round) {
					t.Errorf("seed %d, %s: never settles:\n%s", seed, name, s.out)
				}
				s.pass(7 * time.Minute)
			}
			for _, v := range s.broken() {
				t.Errorf("seed %d, %s: %s", seed, name, v)
			}
		}
	}
}

func rests(s *script, round func(*script) bool) bool {
	for range 100 {
		if !round(s) {
			return true
		}
	}
	s.out.Reset()
	for range 2 {
		if !round(s) {
			return true
		}
	}
	return false
}
