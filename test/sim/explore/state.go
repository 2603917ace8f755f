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
	config                                     *Config
	w                                          *world.World
	leader                                     *leader // nil between two leaders
	led                                        int     // the number of leaders so far
	orphans                                    []*world.Request
	podsSeen                                   int64 // by the kubelets
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

type leader struct {
	ledger *ledger.Ledger
	// tickets are the UIDs that the watch showed: the ledger alone does not tell them.
	tickets map[ledger.TicketID]string
	nodes   [nodes]ledger.NodeState
	memory  *protocol.Memory
	wires   []wire
	// waiting tasks wait for the end of their node's patch, or until an unanswered request can have no
	// effect any more.
	waiting []op
	queue   queue
	retry   queue // the failed ones without news since
	// looked is when the followed answer's read of a Node was served; 0: none.
	looked int64
	// code is nil after a change. fault is an audit's finding.
	code  *encoder
	fault string
	upTo  [world.Kinds + 1]int64
}

type queue struct{ volumes, nodes, tickets uint8 }

type op struct {
	key  string
	task protocol.Task
	// late is the unanswered request to outlast; nil: none.
	late  *world.Request
	waits bool
}

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

type move struct {
	what string
	// Settling moves are the processes' own. Choices and failures are other moves, and may never come.
	settling bool
	do       func(*state)
}

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
