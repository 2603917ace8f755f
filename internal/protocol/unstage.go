// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// beginUnstage sends an order to unstage a volume, or withdraws one. After an unanswered write has been
// outlasted it reads the outcome: until then nothing else is decided about the volume at that node.
//
// The answer to an order, and the read after it, may never come. The proofs end before it is sent, and the
// next Report there reads the orders again.
func (m *Memory) beginUnstage(t Task) (Task, Move) {
	if t.Sent.Do != 0 {
		return t.send(read(NodeWords, string(t.Step.Node)))
	}
	step, word := t.Step, t.Step.Word
	r := Request{Key: string(step.Node), Node: step.Node, Volume: step.Volume, UID: word.UID, Version: word.Version, Orders: ordersBut(&word, step.Volume)}
	if step.Do == rules.WithdrawUnstage {
		r.Do = WithdrawUnstage
		return t.send(r)
	}
	r.Do, r.Look = OrderUnstage, step.Number
	r.Orders = append(r.Orders, ledger.UnstageOrder{
		Volume: step.Volume, Number: step.Number, BootID: word.BootID, KubeletStarted: word.KubeletStarted,
		Seconds: int32(rules.OrderLasts / time.Second),
	})
	slices.SortFunc(r.Orders, func(a, b ledger.UnstageOrder) int { return a.Volume.Compare(b.Volume) })
	m.orderedNow(step.Node)
	t.Orders = m.orders[step.Node].sent
	t, move := t.send(r)
	move.Tell = []ledger.Event{ledger.UnstageSent{Volume: step.Volume, Node: step.Node}}
	return t, move
}

// orderedNow notes that an order is sent to a node: an earlier read does not show it.
func (m *Memory) orderedNow(n ledger.NodeName) {
	delete(m.heard, n)
	if m.orders == nil {
		m.orders = map[ledger.NodeName]orders{}
	}
	o := m.orders[n]
	o.sent++
	m.orders[n] = o
}

// hears notes that an answer shows the standing orders at a task's node, unless an order was sent after the
// request.
func (m *Memory) hears(t Task) {
	if m.ShowsOrders(t) {
		m.heard.add(t.Step.Node)
	}
}

// ShowsOrders says whether no order was sent to a task's node since its last request: none was in flight
// then (readOrders).
func (m *Memory) ShowsOrders(t Task) bool { return m.orders[t.Step.Node].sent == t.Orders }

// Ordering says whether an order to a node is in flight.
func (m *Memory) Ordering(n ledger.NodeName) bool { return m.orders[n].over != m.orders[n].sent }

// ordersBut are the standing orders for all volumes but one.
func ordersBut(word *ledger.NodeWord, v ledger.VolumeID) []ledger.UnstageOrder {
	return slices.DeleteFunc(word.Standing(), func(o ledger.UnstageOrder) bool { return o.Volume == v })
}

// unstageAnswered follows an order or its withdrawal, and the read after it.
func (m *Memory) unstageAnswered(t Task, a Answer, now time.Time) (Task, Move) {
	t, move := m.afterUnstage(t, a, now)
	if o := m.orders[t.Step.Node]; move.End != Going && t.Step.Do == rules.OrderUnstage {
		o.over++
		m.orders[t.Step.Node] = o
	}
	return t, move
}

func (m *Memory) afterUnstage(t Task, a Answer, now time.Time) (Task, Move) {
	orders := t.Step.Do == rules.OrderUnstage
	switch {
	case a.Result == NotFound:
		return t.end(Stale, fmt.Sprintf("node %s has no NodeVolumes any more", t.Step.Node), ledger.NodeWordGone{Node: t.Step.Node, UID: t.Step.Word.UID})
	case t.Sent.Do == GetObject:
		return t.reread(a)
	case a.Result == Done && orders:
		m.hears(t) // the answer has all standing orders
		return t.end(Finished, "")
	case a.Result == Done:
		return t.end(Finished, "")
	case a.Result == Conflict:
		return t.send(read(NodeWords, string(t.Step.Node)))
	case a.Result == Unknown:
		return m.outlast(t, now)
	case a.Result == Refused && orders:
		return t.fail(a, ledger.UnstageNotOrdered{Volume: t.Step.Volume, Node: t.Step.Node})
	}
	return t.fail(a)
}
