// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

// state is one state of the small world.
type state struct {
	config *Config
	w      *world.World
	leader *leader // nil between two leaders
	led    int     // how many leaders there have been
	// orphans are requests in flight whose answer nobody hears.
	orphans  []*world.Request
	podsSeen int64 // by the kubelets
	// What has failed so far.
	restarts, lost, failed, dead               int
	stuck, silences, unready, remade, vanished int
	muted, anew, hung, erased, reboots         int
	renewals                                   int
	asked                                      uint8                       // tickets that users have written, as a set
	sent                                       [len(uids) - 1]binding      // of each pod
	left                                       int                         // schedulers that are gone
	cut                                        [nodes + 1]rules.CutMachine // what the storage has cut off
	leased                                     int                         // how often any Lease has changed
}

// leader is the controller that leads.
type leader struct {
	ledger *ledger.Ledger
	// seen are the objects as the watch has shown them, where the ledger alone
	// doesn't tell: tickets by their UIDs, and the Nodes that are patched.
	tickets map[ledger.TicketID]string
	nodes   [nodes]ledger.NodeState
	memory  *protocol.Memory
	wires   []wire
	// waiting are those that wait for a patch of their node to end, or until a
	// request without an answer can have no effect any more.
	waiting []op
	queue   queue
	retry   queue // of those, what failed, with nothing learned since
	// looked is when the read of a Node was served whose answer is followed now; 0:
	// none is.
	looked int64
	// code is how this is encoded, and fault what an audit finds wrong with it; code is nil
	// after it has changed.
	code  *encoder
	fault string
	// upTo is how far each watch has been shown to know all there is.
	upTo [world.Kinds + 1]int64
}

// queue is what is to be looked at: volumes, nodes with tickets, and tickets,
// as sets.
type queue struct{ volumes, nodes, tickets uint8 }

// op is a task that the leader is at; nothing else of its key is begun meanwhile.
type op struct {
	key  string
	task protocol.Task
	// late is the request without an answer that has to be outlasted; nil: none.
	late *world.Request
	// waits says that it waits for a time, and not for the turn of its patch.
	waits bool
}

// wire is a request in flight, and who waits for its answer.
type wire struct {
	request world.Request
	ops     []op
}

func (s *state) clone() *state {
	c := *s
	c.w = s.w.Clone()
	c.orphans = slices.Clip(s.orphans)
	if s.leader != nil {
		c.leader = s.leader.clone()
	}
	return &c
}

func (l *leader) clone() *leader {
	c := *l
	c.ledger = l.ledger.Fork()
	c.memory = l.memory.Clone()
	c.wires, c.waiting = slices.Clip(l.wires), slices.Clip(l.waiting)
	return &c
}

// move is something that can happen in a state.
type move struct {
	what string
	// settling moves are what everybody does by themselves; the others are
	// choices and failures, which may never come.
	settling bool
	do       func(*state)
}

// moves lists what can happen, always in the same order.
func (s *state) moves() []move {
	var list []move
	if s.leader != nil {
		list = s.leaderMoves(list)
	}
	list = s.kubeletMoves(list)
	list = s.attacherMoves(list)
	list = s.schedulerMoves(list)
	list = s.askMoves(list)
	list = s.volumeMoves(list)
	list = s.agentMoves(list)
	list = s.successionMoves(list)
	return s.failureMoves(list)
}

// after is the state that a move leads to.
func (s *state) after(m move) *state { return s.afterIn(&scratch{}, m) }

// afterIn is after, in room that nobody else uses meanwhile.
func (s *state) afterIn(room *scratch, m move) *state {
	next := s.clone()
	m.do(next)
	next.look()
	next.w.Log = nil
	next.bury()
	if next.leader != nil && next.leader.code == nil {
		next.settle(room)
	}
	return next
}
