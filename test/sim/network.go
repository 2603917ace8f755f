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

// errTimeout is a caller's error for an unanswered request.
var errTimeout = errors.New("no answer in time")

// caller is a process that sends requests. After a kill or a restart it is deaf to earlier answers.
type caller struct {
	name        string
	incarnation int
	up          bool
	paused      bool
	moved       int // the number of its actions and answers
}

func (c *caller) awake() bool { return c.up && !c.paused }

// message is a request on its way: sent, then served, then answered. It may be lost on either way, and
// served long after its caller gave up.
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

// network is between the processes and the API server.
type network struct {
	s        *Sim
	messages []*message
	down     bool // the API server
}

// send puts a request on its way. op names it among its caller's requests.
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

// servable says whether a request may still be carried out. Most may, however late: their preconditions
// prevent harm. Some have no such precondition, and are waited for until the API server, which knows the
// timeout, has given up: the creation of a VolumeAttachment and an addition to volumesAttached, by all; a
// Binding, by its scheduler's next leader; a ticket's status, by its sender if it still leads, which relies
// on a read after that. Others lack a test: a forced deletion does not test the Node, a forced removal from
// volumesAttached not the Lease of a returned kubelet, and the removal of a volume without
// VolumeAttachments not its user; all are over when the API server has given them up. A kubelet's
// volumesInUse counts only while that kubelet waits for it: no controller can be safe from a kubelet that
// contradicts itself.
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

// over says whether a caller may learn that no answer will come: its time is over, or the connection broke.
func (n *network) over(m *message) bool {
	return !m.deaf() && m.caller.awake() && (m.lost || !n.s.Now().Before(m.deadline))
}

// conflicts says whether a request may be answered with a conflict, and carried out all the same, by then
// or later: the API server answers so for any storage failure at a bind.
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

// noteStray notes a VolumeAttachment made for a kube-controller-manager that has ended.
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
