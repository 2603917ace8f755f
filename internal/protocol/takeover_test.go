// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestTakeOverHearsOfANodeThatIsMadeAgainMeanwhile(t *testing.T) {
	held := ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{
		Version: "1", State: ledger.HoldHeld, Node: "n1", NodeUID: "before", SystemUUID: "m", BootID: "a",
	}}
	p := newPlayer(node("1", names("m"), func(n *ledger.NodeState) { n.BootID = "b" }), attachment("5"), held)
	for range 4 { // the lists of the take-over
		p.play(t, p.memory.TakeOver(p.ledger.Snapshot())[0], replies(Done))
	}
	tasks := p.memory.TakeOver(p.ledger.Snapshot())
	if len(tasks) != 1 || tasks[0].Commit.Object != Nodes {
		t.Fatalf("no read of the Node: %+v", tasks)
	}
	task, move := p.memory.Next(tasks[0], p.ledger.Snapshot(), p.now)
	if move.Send == nil {
		t.Fatal("nothing is sent")
	}
	// The answer "not found" is older than the new Node.
	p.ledger.Apply(p.now, ledger.NodeGone{Name: "n1"})
	p.ledger.Apply(p.now, node("9", names("m"), func(n *ledger.NodeState) { n.UID, n.BootID = "again", "b" }))
	_, move = p.memory.Answer(task, Answer{Result: NotFound}, p.ledger.Snapshot(), p.now)
	for _, e := range move.Tell {
		p.ledger.Apply(p.now, e)
	}
	if n := p.ledger.Snapshot().Node("n1"); n == nil || !n.Exists || n.Ready != ledger.ReadyTrue {
		t.Errorf("the Node is there and Ready, and counts as gone until it changes next: %+v", n)
	}
}

// A Node without a name is never read: no API server answers.
func TestTakeOverOfAHoldThatStaysNowhere(t *testing.T) {
	held := ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Version: "1", State: ledger.HoldUnknown, Stays: true, Transitions: 1}}
	p := newPlayer(node("1", names("m"), func(n *ledger.NodeState) { n.BootID = "b" }), attachment("5"), held)
	for range 4 { // the lists of the take-over
		p.play(t, p.memory.TakeOver(p.ledger.Snapshot())[0], replies(Done))
	}
	for range 3 {
		for _, task := range p.memory.TakeOver(p.ledger.Snapshot()) {
			if task.Commit.Object == Nodes && task.Commit.Key == "" {
				t.Errorf("a read of a Node without a name: %v", p.play(t, task, replies(Refused))) // client-go: resource name may not be empty
			}
		}
	}
	if tasks := p.memory.TakeOver(p.ledger.Snapshot()); len(tasks) != 1 || !tasks[0].TookOver {
		t.Error("the take-over does not come to its end")
	}
}
