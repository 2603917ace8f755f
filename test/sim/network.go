// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

var errTimeout = errors.New("no answer in time")

// After a kill or a restart, caller is deaf to earlier answers.
type caller struct {
	name        string
	incarnation int
	up          bool
	paused      bool
	moved       int // the number of its actions and answers
}

func (c *caller) awake() bool { return c.up && !c.paused }

type message struct {
	id          string
	caller      *caller
	incarnation int
	request     world.Request
	deadline    time.Time
	served      bool
	answer      world.Answer
	lost        bool // on either way
	given       bool // the caller has given up
	then        func(world.Answer, error)
}

func (m *message) deaf() bool { return m.given || m.caller.incarnation != m.incarnation }

type network struct {
	s        *Sim
	messages []*message
	down     bool // the API server
}

func (n *network) send(c *caller, op string, deadline time.Time, r world.Request, then func(world.Answer, error)) {
	id := messageID(c, op)
	for slices.ContainsFunc(n.messages, func(m *message) bool { return m.id == id }) {
		id += "'"
	}
	n.messages = append(n.messages, &message{id: id, caller: c, incarnation: c.incarnation, request: r, deadline: deadline, then: then})
}

func messageID(c *caller, op string) string {
	return c.name + "." + strconv.Itoa(c.incarnation) + ":" + strings.ReplaceAll(op, " ", "/")
}

func (n *network) find(id string) *message {
	for _, m := range n.messages {
		if m.id == id {
			return m
		}
	}
	return nil
}

func (n *network) remove(m *message) {
	n.messages = slices.DeleteFunc(n.messages, func(o *message) bool { return o == m })
}

// Most requests may be carried out however late, since their preconditions prevent harm. Others, which lack
// a precondition or a test of the Node, the Lease or the user, are over when the API server has given them
// up. A kubelet's volumesInUse counts only while that kubelet waits for it.
func (n *network) servable(m *message) bool {
	if m.served || m.lost || n.down {
		return false
	}
	r := m.request
	switch {
	case r.Adds(), r.Detaches(), r.Do == world.BindPod, r.Do == world.DecideTicket && n.s.lease.heldBy(m):
		return n.s.Now().Before(m.deadline.Add(n.s.config.WriteTimeout))
	case r.Do == world.ReportUse:
		return !m.deaf()
	case r.Within:
		return n.s.Now().Before(m.deadline)
	case r.Manager && r.Do != world.GetObject:
		return !m.deaf() // its preconditions are its own responsibility
	}
	return true
}

func (n *network) over(m *message) bool {
	return !m.deaf() && m.caller.awake() && (m.lost || !n.s.Now().Before(m.deadline))
}

// conflicts: the API server answers any storage failure at a bind with a conflict, and may carry the bind
// out all the same.
func (n *network) conflicts(m *message) bool {
	return n.s.config.Conflicts && m.request.Do == world.BindPod && !m.lost && !m.deaf() && m.caller.awake() && !n.down
}

func (m *message) answerable() bool {
	return m.served && !m.lost && !m.deaf() && m.caller.awake()
}

func (n *network) offer(m *menu) {
	for _, msg := range n.messages {
		late := msg.deaf() || !n.s.Now().Before(msg.deadline)
		if n.servable(msg) {
			weight := 20
			if late {
				weight = 3
			}
			m.add(weight, "api", "serve", msg.id)
		}
		if msg.answerable() {
			m.add(20, "net", "answer", msg.id)
		}
		if n.over(msg) {
			m.add(20, "net", "give-up", msg.id)
		}
		if n.s.faulty && n.conflicts(msg) {
			m.addTo(harm, 1, "net", "conflict", msg.id)
		}
		switch {
		case late && msg.deaf():
			m.add(1, "net", "lose", msg.id)
		case n.s.faulty && n.s.config.Losses && !msg.lost && !msg.request.Manager: // see manager.pressed
			m.addTo(harm, 1, "net", "lose", msg.id)
		}
	}
}

func (n *network) act(what, id string) bool {
	m := n.find(id)
	if m == nil {
		return false
	}
	switch {
	case what == "serve" && n.servable(m):
		if m.request.Do == world.DropHold && (m.deaf() || !n.s.Now().Before(m.deadline)) {
			m.request.Since = 0 // its sender could have made sure that it fails by now
		}
		m.answer, m.served = n.s.w.Serve(m.request), true
		n.s.noteStray(m)
		if m.deaf() {
			n.remove(m)
		}
	case what == "answer" && m.answerable():
		n.remove(m)
		m.then(m.answer, nil)
	case what == "give-up" && n.over(m):
		m.given = true
		if a, ok := m.request.Fact.(ledger.Attachment); ok && m.request.Do == world.CreateAttachment {
			n.s.w.Judge.Unanswered(n.s.w, a)
		}
		if m.served || m.lost {
			n.remove(m)
		}
		m.then(world.Answer{}, errTimeout)
	case what == "conflict" && n.conflicts(m):
		m.given = true
		if m.served {
			n.remove(m)
		}
		m.then(world.Answer{Code: world.Conflict}, nil)
	case what == "lose" && m.deaf():
		n.remove(m)
	case what == "lose" && !m.lost:
		m.lost = true
	default:
		return false
	}
	return true
}

func (s *Sim) noteStray(m *message) {
	if !m.request.Manager || m.request.Do != world.CreateAttachment || m.caller.incarnation == m.incarnation {
		return
	}
	for _, e := range m.answer.Facts {
		if a, ok := e.(ledger.Attachment); ok {
			s.strays[a.UID] = true
		}
	}
}

func (n *network) due() time.Time {
	var t time.Time
	for _, m := range n.messages {
		if !m.deaf() && n.s.Now().Before(m.deadline) {
			t = earlier(t, m.deadline)
		}
	}
	return t
}
