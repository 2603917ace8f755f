// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/sim/world"
)

// state is one state of the small world.
type state struct {
	config   *Config
	w        *world.World
	leader   *leader // nil between two leaders
	led      int     // how many leaders there have been
	orphans  []world.Request
	kubelets []kubelet
	// What has failed so far.
	restarts, lost, failed, dead int
}

// kubelet is one node's: what its process remembers, as sets of volumes and
// pods.
type kubelet struct {
	up       bool
	told     uint8 // in volumesInUse, by its own report
	attached uint8 // held for attached
	ended    uint8 // pods
}

// leader is the controller that leads.
type leader struct {
	ledger *ledger.Ledger
	// seen are the objects as the watch has shown them, where the ledger alone
	// doesn't tell: tickets by their UIDs, and the Nodes that are patched.
	tickets   map[ledger.TicketID]string
	nodes     [nodes]ledger.NodeState
	confirmed []string // attachments, by UID
	ops       []op
	queue     queue
	retry     queue // of those, what failed, with nothing learned since
	// code is how this is encoded; nil after it has changed.
	code *encoder
	// upTo is how far each watch has been shown to know all there is.
	upTo [world.Kinds]int64
}

// queue is what is to be looked at: volumes, nodes with tickets, and tickets,
// as sets.
type queue struct{ volumes, nodes, tickets uint8 }

// op is something that the leader is at: one request at a time, and nothing
// else of its key.
type op struct {
	key     string
	step    arbiter.Step // of a plan, or the hold that a grant writes now
	request world.Request
	waits   bool // for another write of its node
	then    []arbiter.Step
	commit  *world.Request // of a grant: after all holds
	drops   *ledger.Ticket // a ticket that is deleted, once its pod is proved gone
}

func (s *state) clone() *state {
	c := *s
	c.w = s.w.Clone()
	c.orphans = slices.Clip(s.orphans)
	c.kubelets = slices.Clone(s.kubelets)
	if s.leader != nil {
		c.leader = s.leader.clone()
	}
	return &c
}

func (l *leader) clone() *leader {
	c := *l
	c.ledger = l.ledger.Fork()
	c.confirmed = slices.Clip(l.confirmed)
	c.ops = slices.Clip(l.ops)
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
	list = s.successionMoves(list)
	return s.failureMoves(list)
}

// after is the state that a move leads to.
func (s *state) after(m move) *state {
	next := s.clone()
	m.do(next)
	next.w.Log = nil
	next.bury()
	if next.leader != nil && next.leader.code == nil {
		next.rest()
	}
	return next
}
