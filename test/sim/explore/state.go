// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

type state struct {
	config *Config
	w      *world.World
	leader *leader // nil between two leaders
	led    int     // the number of leaders so far
	// orphans are requests in flight without a reader of their answer.
	orphans  []*world.Request
	podsSeen int64 // by the kubelets
	// The failures so far.
	restarts, lost, failed, dead               int
	stuck, silences, unready, remade, vanished int
	muted, anew, erased, reboots               int
	renewals                                   int
	asked                                      uint8                       // tickets written by users, as a set
	sent                                       [len(uids) - 1]binding      // of each pod
	left                                       int                         // ended schedulers
	cut                                        [nodes + 1]rules.CutMachine // machines cut off by the storage
	leased                                     int                         // the number of all Lease changes
}

// leader is the leading controller.
type leader struct {
	ledger *ledger.Ledger
	// tickets are the UIDs of tickets as the watch showed them, which the ledger alone doesn't tell; nodes
	// are the Nodes to patch.
	tickets map[ledger.TicketID]string
	nodes   [nodes]ledger.NodeState
	memory  *protocol.Memory
	wires   []wire
	// waiting are tasks that wait for the end of their node's patch, or until an unanswered request can
	// have no effect any more.
	waiting []op
	queue   queue
	retry   queue // the failed ones without news since
	// looked is when the followed answer's read of a Node was served; 0: none.
	looked int64
	// code is the leader's encoding, and fault an audit's finding; code is nil after a change.
	code  *encoder
	fault string
	// upTo is each watch's progress.
	upTo [world.Kinds + 1]int64
}

// queue holds the keys to check: volumes, nodes with tickets, and tickets, as sets.
type queue struct{ volumes, nodes, tickets uint8 }

// op is a task of the leader; no other task of its key begins meanwhile.
type op struct {
	key  string
	task protocol.Task
	// late is the unanswered request to outlast; nil: none.
	late *world.Request
	// waits says that it waits for a time, not for its patch's turn.
	waits bool
}

// wire is a request in flight with the waiters for its answer.
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

// move is a possible event in a state.
type move struct {
	what string
	// settling moves are the processes' own; the others are choices and failures, which may never come.
	settling bool
	do       func(*state)
}

// moves lists the possible events, always in the same order.
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

func (s *state) after(m move) *state { return s.afterIn(&scratch{}, m) }

// afterIn is after with exclusive memory.
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
