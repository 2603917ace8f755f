// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// How a moorage-node unstages a volume that a kubelet has forgotten. It announces the call, at the version
// of the order; looks once more, at the machine and at its Node; and calls the driver. From then on the
// call is the driver's: it may take effect after its timeout. The driver does one call for a volume at a
// time, and answers the last one when all have ended.

// readOrders takes in the standing orders, and answers orders that can't be carried out. It announces
// the next order, if there is one.
func (w *World) readOrders(m *Machine, old ledger.NodeWord) {
	a := &m.Agent
	if old.BootID == m.BootID() {
		for _, before := range old.Answers {
			if _, known := a.answer(before.Volume); known {
				continue
			}
			a.Answers = answered(a.Answers, before)
			if before.Unanswered {
				a.Open = include(a.Open, before.Volume, ledger.VolumeID.Compare)
			}
		}
	}
	if old.UID != "" && old.UID != a.Object {
		a.Object, a.Before = old.UID, 0
		for _, o := range old.Orders {
			a.Before = max(a.Before, o.Number)
		}
	}
	for _, o := range old.Orders {
		if is, known := a.answer(o.Volume); known && is.Number >= o.Number && (is.Result != ledger.UnstageCalling || is.Number > o.Number) {
			continue
		}
		if a.Number < o.Number {
			a.Number, a.Since = o.Number, w.Now
		}
		if why := w.refusesOrder(m, o); why != "" {
			a.answers(o, ledger.UnstageRefused, why)
			continue
		}
		a.Doing = o
		return
	}
}

// refusesOrder says why an order is not carried out, as far as its machine shows; empty: it is.
func (w *World) refusesOrder(m *Machine, o ledger.UnstageOrder) string {
	switch {
	case !m.Agent.Repairs:
		return "it may not"
	case o.Number <= m.Agent.Before:
		return "of before"
	case o.BootID != m.BootID() || o.KubeletStarted != int64(m.Starts):
		return "of another start"
	case m.Agent.Number == o.Number && w.Now.Sub(m.Agent.Since) >= time.Duration(o.Seconds)*time.Second:
		return "over"
	case len(m.Mounts[o.Volume]) > 0:
		return "a pod's"
	case !lacks(m.Recorded, o.Volume):
		return "recorded since the kubelet began"
	}
	return ""
}

// announced takes in that its findings were written.
func (a *Agent) announced(found *ledger.NodeWord) {
	if a.Doing.Number == 0 {
		return
	}
	a.Answers = found.Answers
	a.Written = true
}

// Call has a moorage-node look once more, read its Node, and call the driver.
func (w *World) Call(m *Machine) bool {
	a := &m.Agent
	if !m.Powered || !a.Runs || !a.Written || a.Called {
		return false
	}
	why := w.refusesOrder(m, a.Doing)
	switch node, exists := w.Node(m.Node); {
	case why != "":
	case !exists || node.BootID != m.BootID():
		why = "another Node"
	case !lacks(node.Reported, a.Doing.Volume):
		why = "attached"
	case a.Uncallable:
		why = "the driver could not be called"
	}
	if why != "" {
		a.answers(a.Doing, ledger.UnstageRefused, why)
		a.rest()
		return true
	}
	a.Called = true
	a.Open = include(a.Open, a.Doing.Volume, ledger.VolumeID.Compare)
	m.Calls = include(m.Calls, a.Doing.Volume, ledger.VolumeID.Compare)
	return true
}

// Unstages has the calls for a volume take effect, and be answered.
func (w *World) Unstages(m *Machine, v ledger.VolumeID) bool {
	if lacks(m.Calls, v) || !lacks(m.Stuck, v) {
		return false
	}
	m.Calls = exclude(m.Calls, v)
	w.Judge.unstages(m, v)
	m.unstaged(v)
	if a := &m.Agent; a.Called && a.Doing.Volume == v {
		a.answers(a.Doing, ledger.UnstageDone, "")
		a.rest()
	}
	return true
}

// FailsToUnstage has the calls for a stuck volume end with an error.
func (w *World) FailsToUnstage(m *Machine, v ledger.VolumeID) bool {
	if lacks(m.Calls, v) || lacks(m.Stuck, v) {
		return false
	}
	m.Calls = exclude(m.Calls, v)
	if m.Agent.Doing.Volume == v {
		w.GiveUp(m)
	}
	return true
}

// GiveUp has a moorage-node stop waiting for its call's answer; the call continues.
func (w *World) GiveUp(m *Machine) bool {
	a := &m.Agent
	if !a.Called {
		return false
	}
	a.answers(a.Doing, ledger.UnstageFailed, "no answer")
	a.rest()
	return true
}

func (a *Agent) rest() { a.Doing, a.Written, a.Called = ledger.UnstageOrder{}, false, false }

func (a *Agent) answer(v ledger.VolumeID) (ledger.UnstageAnswer, bool) {
	i := slices.IndexFunc(a.Answers, func(b ledger.UnstageAnswer) bool { return b.Volume == v })
	if i < 0 {
		return ledger.UnstageAnswer{}, false
	}
	return a.Answers[i], true
}

// answers notes the outcome of an order. Only the driver's word ends a call.
func (a *Agent) answers(o ledger.UnstageOrder, result ledger.UnstageResult, why string) {
	if result == ledger.UnstageDone {
		a.Open = exclude(a.Open, o.Volume)
	}
	is := ledger.UnstageAnswer{Volume: o.Volume, Number: o.Number, Result: result, Why: why, Unanswered: slices.Contains(a.Open, o.Volume)}
	a.Answers = answered(a.Answers, is)
}

func answered(list []ledger.UnstageAnswer, is ledger.UnstageAnswer) []ledger.UnstageAnswer {
	list = slices.DeleteFunc(slices.Clone(list), func(b ledger.UnstageAnswer) bool { return b.Volume == is.Volume })
	list = append(list, is)
	slices.SortFunc(list, func(a, b ledger.UnstageAnswer) int { return a.Volume.Compare(b.Volume) })
	return list
}
