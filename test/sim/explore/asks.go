// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"strconv"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/test/world"
)

// A user writes an Ask once and deletes it later, at any time. A yielding ticket lets go of its volume
// sooner or later.
type Ask struct {
	Type   ledger.TicketType
	Volume int
	Node   int // 0: it asks for the volume to be detached
}

const firstAsk = 4

const detachedNode = nodes + 1

func askID(i int) ledger.TicketID {
	return ledger.TicketID{Namespace: namespace, Name: "t" + strconv.Itoa(firstAsk+i)}
}

func (a Ask) node() ledger.NodeName {
	if a.Node == 0 {
		return ledger.Detached
	}
	return node(a.Node)
}

func (c *Config) tickets() []ledger.TicketID {
	var list []ledger.TicketID
	for i := range c.Asks {
		list = append(list, askID(i))
	}
	return list
}

func (c *Config) nodesWithTickets() []ledger.NodeName {
	if len(c.Asks) == 0 {
		return nil
	}
	list := []ledger.NodeName{node(1), node(2)}
	if slices.ContainsFunc(c.Asks, func(a Ask) bool { return a.Node == 0 }) {
		list = append(list, ledger.Detached)
	}
	return list
}

func (s *state) askMoves(list []move) []move {
	for i, ask := range s.config.Asks {
		id := askID(i)
		t, exists := s.w.Ticket(id)
		switch {
		case exists && t.YieldingSince != 0 && !t.LetsGo:
			list = append(list, move{id.Name + " lets go", true, func(s *state) {
				t.LetsGo = true
				s.w.Put(t)
			}})
			fallthrough
		case exists:
			list = append(list, move{"user deletes " + id.Name, false, func(s *state) { s.w.Drop(world.Tickets, id.String()) }})
		case s.asked&bit(i+1) == 0:
			list = append(list, move{"user writes " + id.Name, false, func(s *state) {
				s.asked |= bit(i + 1)
				claim := claimName(ask.Volume, false)
				s.w.Put(ledger.Ticket{
					ID: id, UID: s.w.UID(), Type: ask.Type, Node: ask.node(), Volumes: []ledger.TicketVolume{{Claim: claim, ClaimUID: claim}},
				})
			}})
		}
	}
	return list
}

func (e *encoder) asks(s *state) {
	e.byte(s.asked)
	for i := range s.config.Asks {
		t, exists := s.w.Ticket(askID(i))
		e.bool(exists)
		if exists {
			e.ticket(t)
		}
	}
}

func (s *state) satisfied(snapshot ledger.Snapshot, t *ledger.Ticket) (protocol.Task, bool) {
	if t.Phase != ledger.TicketGranted && t.SatisfiedSince == 0 {
		return protocol.Task{}, false
	}
	is := s.arbiter().Satisfied(snapshot, t, s.w.Now).Allowed()
	if is == (t.SatisfiedSince != 0) {
		return protocol.Task{}, false
	}
	status := ledger.Ticket{}
	if is {
		status.SatisfiedSince = s.w.Now.Unix()
	}
	task := protocol.Write(t)
	task.Commit.Fact = status
	return task, true
}

// Neither a yielding ticket, nor a ticket that waits for a pod, keeps a volume from a placed pod.
func (s *state) askedFor(claim int, n ledger.NodeName) bool {
	for i, ask := range s.config.Asks {
		t, exists := s.w.Ticket(askID(i))
		if !exists || ask.Volume != claim || ask.Type.Yields() || ask.node() == n {
			continue
		}
		if t.Phase == ledger.TicketGranted || !s.lives(claim) {
			return true
		}
	}
	return false
}

func (s *state) lives(claim int) bool {
	for i, claims := range s.config.Pods {
		if p, exists := s.w.Pod(pod(i + 1)); exists && p.Node != "" && p.Phase == ledger.PodLive && slices.Contains(claims, claim) {
			return true
		}
	}
	return false
}

func (s *state) misled() string {
	if s.config.DeadNodes > 0 || s.config.Remade > 0 {
		return ""
	}
	for i, ask := range s.config.Asks {
		t, exists := s.w.Ticket(askID(i))
		if v := volume(ask.Volume); exists && t.SatisfiedSince != 0 && ask.Node != 0 && v.NoAttach() && !s.reports(ask.Node, v) {
			return t.ID.Name + " is told that it has its volume, which is not in volumesAttached"
		}
	}
	return ""
}

func (s *state) reports(n int, v ledger.VolumeID) bool {
	now, _ := s.w.Node(node(n))
	return slices.Contains(now.Reported, v)
}

func (s *state) unanswered() string {
	for i, ask := range s.config.Asks {
		t, exists := s.w.Ticket(askID(i))
		waits := exists && t.Phase == ledger.TicketGranted && t.SatisfiedSince == 0
		if v := volume(ask.Volume); waits && ask.Node != 0 && v.NoAttach() && s.reports(ask.Node, v) {
			return t.ID.Name + " is not told that it has its volume"
		}
		if exists && t.Node == ledger.Detached && t.Phase == ledger.TicketGranted && t.SatisfiedSince == 0 && s.stuck == 0 && s.dead == 0 && !s.listedSomewhere(s.config.Asks[i].Volume) {
			return t.ID.Name + " is not told that its volume is attached nowhere"
		}
	}
	return ""
}

func (s *state) listedSomewhere(claim int) bool {
	for n := 1; n <= nodes; n++ {
		now, _ := s.w.Node(node(n))
		if slices.Contains(now.InUse, volume(claim)) || slices.Contains(now.Reported, volume(claim)) || s.w.Get(world.Attachments, attachmentName(claim, n)) != nil {
			return true
		}
	}
	return false
}

func asking(leaders int, foreign bool, asks ...Ask) Config {
	return Config{
		Pods: [][]int{{1}}, Placed: []int{1}, Foreign: []bool{foreign}, Deletable: []bool{true},
		Access: []ledger.Access{ledger.AccessNode}, Limit: 1, Leaders: leaders, Asks: asks,
	}
}

func comes(leaders int, foreign bool, asks ...Ask) Config {
	c := asking(leaders, foreign, asks...)
	c.Placed[0] = 0
	return c
}

func unheard(leaders int, access ledger.Access) Config {
	return Config{
		Access: []ledger.Access{access}, Limit: 1, Leaders: leaders, Silences: 1,
		Asks: []Ask{{Type: ledger.TypeManual, Volume: 1, Node: 1}},
	}
}

func handed(leaders int, asks ...Ask) Config {
	c := Handover()
	c.Leaders, c.Asks = leaders, asks
	return c
}
