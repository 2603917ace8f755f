// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"time"
)

// UnstageOrder is an order to the moorage-node of a node: to unstage one volume there.
type UnstageOrder struct {
	Volume VolumeID
	// Number is higher than all earlier numbers of the NodeVolumes.
	Number int64
	// BootID and KubeletStarted are those of the decision's report. The order is void in another boot, and
	// after another start of the kubelet.
	BootID         string
	KubeletStarted int64 // seconds since 1970, by the node's clock
	// Seconds is how long moorage-node may begin to carry it out after its first read of the number.
	Seconds int32
}

// UnstageResult is the outcome of an order.
type UnstageResult uint8

const (
	// UnstageRefused: moorage-node has not called the driver for this number.
	UnstageRefused UnstageResult = iota
	// UnstageCalling: it is about to call, or the driver has not answered.
	UnstageCalling
	// UnstageFailed: the driver has not answered that nothing is left of the volume; or, if no call is
	// Unanswered, it has, and the kubelet's record could not be removed.
	UnstageFailed
	// UnstageDone: the driver has answered so to the last call.
	UnstageDone
)

// UnstageAnswer is the answer of moorage-node to an order.
type UnstageAnswer struct {
	Volume VolumeID
	Number int64
	Result UnstageResult
	// Unanswered: after a call, for this order or an earlier one, the driver has not said that nothing is
	// left. It may take effect at any time.
	Unanswered bool
	// Why is the reason in words.
	Why string
}

// call is a call to unstage a volume that may still take effect.
type call struct {
	volume VolumeID
	number int64  // of the last order that it may have been made for; 0: none
	next   int64  // of a later order that it is about to be made for; 0: none
	boot   string // of the machine: a call ends with it
}

// attempt counts a volume's failed orders in a row.
type attempt struct {
	volume   VolumeID
	failures int
	at       time.Time // of the last one
	why      string
}

// Ordered returns a node's standing order to unstage a volume: moorage-node may carry it out at any time.
func (n *Node) Ordered(v VolumeID) (UnstageOrder, bool) {
	if n == nil || n.Word == nil {
		return UnstageOrder{}, false
	}
	for _, o := range n.Word.Orders {
		if o.Volume == v && !n.Word.ended(o) {
			return o, true
		}
	}
	return UnstageOrder{}, false
}

func (w *NodeWord) ended(o UnstageOrder) bool {
	a, found := w.answer(o.Volume)
	return found && a.Number == o.Number && a.Result != UnstageCalling
}

// Standing are the orders without an answer of moorage-node.
func (w *NodeWord) Standing() []UnstageOrder {
	return slices.DeleteFunc(slices.Clone(w.Orders), w.ended)
}

func (w *NodeWord) answer(v VolumeID) (UnstageAnswer, bool) {
	i := slices.IndexFunc(w.Answers, func(a UnstageAnswer) bool { return a.Volume == v })
	if i < 0 {
		return UnstageAnswer{}, false
	}
	return w.Answers[i], true
}

// Unanswered says whether a call to unstage a volume at a node may still take effect: of this boot, as far
// as the boot is known.
func (n *Node) Unanswered(v VolumeID) bool {
	made, next := n.Calls(v)
	return made != 0 || next != 0
}

// Calls returns the number of the last order for which a call to unstage a volume may have been made in
// this boot, without an answer, and the number of a later order with a call about to be made; 0: none.
func (n *Node) Calls(v VolumeID) (made, next int64) {
	if n == nil {
		return 0, 0
	}
	i := slices.IndexFunc(n.calls, func(c call) bool { return c.volume == v })
	if i < 0 || n.BootID != "" && n.calls[i].boot != "" && n.calls[i].boot != n.BootID {
		return 0, 0
	}
	return n.calls[i].number, n.calls[i].next
}

// MayBeUnstaged says whether a volume at a node may be unstaged at any time, by a standing order or an
// unanswered call. A mount there may be lost.
func (n *Node) MayBeUnstaged(v VolumeID) bool {
	_, ordered := n.Ordered(v)
	return ordered || n.Unanswered(v)
}

// UnstageFailures returns the number of a volume's failed orders in a row at a node, with the last one's
// time and cause.
func (n *Node) UnstageFailures(v VolumeID) (failures int, last time.Time, why string) {
	if n != nil {
		if i := n.attempt(v); i >= 0 {
			a := n.attempts[i]
			return a.failures, a.at, a.why
		}
	}
	return 0, time.Time{}, ""
}

// NextNumber is the number of the next look or order: higher than all others. The API refuses a number that
// it can't hold.
func (n *Node) NextNumber() int64 {
	if n == nil || n.Word == nil {
		return 1
	}
	highest := max(n.Word.Look, n.Word.Looked)
	for _, o := range n.Word.Orders {
		highest = max(highest, o.Number)
	}
	for _, a := range n.Word.Answers {
		highest = max(highest, a.Number)
	}
	for _, c := range n.calls {
		highest = max(highest, c.number, c.next)
	}
	if highest < MaxNumber {
		return highest + 1
	}
	return MaxNumber + 1 // the API refuses it
}

// MaxNumber is the highest number of a look or an order that the API takes.
const MaxNumber = 1<<31 - 1

// repeats says whether the report before said the same of an order.
func (w *NodeWord) repeats(was *NodeWord, a UnstageAnswer) bool {
	if was == nil || was.UID != w.UID {
		return false
	}
	before, found := was.answer(a.Volume)
	return found && before.Number == a.Number && before.Result == a.Result
}

// hear takes in a new report about orders and calls, and names their volumes. A call ends with the driver's
// answer to it or to a later call, with the report that it was not made, or with the boot; not with the
// object or the process that reported it.
func (n *Node) hear(t *Touched, was, w *NodeWord, now time.Time) {
	for _, word := range []*NodeWord{was, w} {
		if word == nil {
			continue
		}
		for _, o := range word.Orders {
			t.volume(o.Volume)
		}
		for _, a := range word.Answers {
			t.volume(a.Volume)
		}
	}
	n.booted(w.BootID)
	for _, a := range w.Answers {
		n.answered(a, w.BootID)
		if w.repeats(was, a) {
			continue
		}
		switch a.Result {
		case UnstageRefused, UnstageFailed:
			n.failed(a.Volume, now, a.Why)
		case UnstageDone:
			n.attempts = slices.DeleteFunc(slices.Clone(n.attempts), func(b attempt) bool { return b.volume == a.Volume })
		case UnstageCalling:
		}
	}
	n.attempts = slices.DeleteFunc(slices.Clone(n.attempts), func(b attempt) bool { return !w.has(b.volume) && !n.Unanswered(b.volume) })
}

// booted ends the calls of other boots. A call of an unknown boot counts as of this boot.
func (n *Node) booted(boot string) {
	if boot == "" || !slices.ContainsFunc(n.calls, func(c call) bool { return c.boot != boot }) {
		return
	}
	var left []call // snapshots share the list
	for _, c := range n.calls {
		if c.boot == "" || c.boot == boot {
			c.boot = boot
			left = append(left, c)
		}
	}
	n.calls = left
}

// answered takes in the report about an order's call. A failed order ends no earlier call, not even an
// announced one.
func (n *Node) answered(a UnstageAnswer, boot string) {
	i := slices.IndexFunc(n.calls, func(c call) bool { return c.volume == a.Volume })
	was := call{volume: a.Volume}
	if i >= 0 {
		was = n.calls[i]
	}
	is := was
	switch {
	case a.Result == UnstageCalling:
		if is.next != a.Number {
			is.number = max(is.number, is.next) // it may have been made: no report denies it
		}
		if is.next = a.Number; is.number >= a.Number {
			is.next = 0
		}
	case a.Unanswered:
		if is.number = max(is.number, a.Number); is.next <= is.number {
			is.next = 0
		}
	case a.Result == UnstageDone || a.Result == UnstageFailed: // the driver has answered
		if is.number <= a.Number {
			is.number = 0
		}
		if is.next <= a.Number {
			is.next = 0
		}
	case a.Result == UnstageRefused && is.next == a.Number: // it was about to be made, and was not
		is.next = 0
	}
	if boot != "" {
		is.boot = boot
	}
	if is != was {
		n.keepCall(i, is)
	}
}

// keepCall replaces the call at i; -1: adds it. Snapshots share the list.
func (n *Node) keepCall(i int, c call) {
	n.calls = slices.Clone(n.calls)
	if i >= 0 {
		n.calls = slices.Delete(n.calls, i, i+1)
	}
	if c.number != 0 || c.next != 0 {
		n.calls = append(n.calls, c)
		slices.SortFunc(n.calls, func(a, b call) int { return a.volume.Compare(b.volume) })
	}
}

func (n *Node) attempt(v VolumeID) int {
	return slices.IndexFunc(n.attempts, func(a attempt) bool { return a.volume == v })
}

// failed counts an order that led to nothing.
func (n *Node) failed(v VolumeID, now time.Time, why string) {
	n.attempts = slices.Clone(n.attempts)
	i := n.attempt(v)
	if i < 0 {
		n.attempts = append(n.attempts, attempt{volume: v})
		i = len(n.attempts) - 1
	}
	n.attempts[i].failures, n.attempts[i].at, n.attempts[i].why = n.attempts[i].failures+1, now, why
}

// UnstageSent says that this process sends an order to unstage a volume. After that it must be proved again
// that no user wants the volume there.
type UnstageSent struct {
	Volume VolumeID
	Node   NodeName
}

func (e UnstageSent) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	if p := l.facts.volumes.get(e.Volume).NodeVolume(e.Node); p != nil && p.Proof.Stage == ProofUnwanted {
		l.changeNodeVolume(now, t, e.Volume, e.Node, func(p *NodeVolume) { p.Proof.Stage = ProofUnreported })
	}
}

// UnstageNotOrdered says that the API server refused an order permanently: by rights, a policy or a schema.
// It concerns that volume alone.
type UnstageNotOrdered struct {
	Volume VolumeID
	Node   NodeName
}

func (e UnstageNotOrdered) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	if n := l.facts.nodes.get(e.Node); n == nil || n.Word == nil {
		return
	}
	l.node(e.Node).failed(e.Volume, now, "the API server refuses the order")
	t.volume(e.Volume)
}
