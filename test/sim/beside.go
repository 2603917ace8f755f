// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/execute"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/sim/world"
)

// doProveAbsent reads a Node, and proves that a volume is neither in use there
// nor reported.
func (c *controller) doProveAbsent(step arbiter.Step, then func(error)) {
	r := world.Request{Do: world.GetObject, Kind: world.Nodes, Key: string(step.Node)}
	c.write(stepOp(step), r, func(a world.Answer, err error) {
		n, found := firstFact(a).(ledger.NodeState)
		switch {
		case err != nil:
			then(err)
		case !found && step.NodeUID == "":
			c.unreported(step)
			then(nil)
		case !found:
			then(errStale)
		default:
			c.observer.saw(n)
			if !execute.Absent(world.NodeObject(n), step) {
				then(errStale)
				return
			}
			c.unreported(step)
			then(nil)
		}
	})
}

// doDeleteWithin lists the node's pods once more, and deletes the attachment
// within the step's time of that.
func (c *controller) doDeleteWithin(step arbiter.Step, then func(error)) {
	deadline := c.s.Now().Add(step.Within)
	c.listPods(step.Node, []*entry{{step, func(err error) {
		place := c.observer.snapshot().Volume(step.Volume).Place(step.Node)
		switch {
		case err != nil:
			then(err)
		case place == nil || place.Proof.Stage != ledger.ProofUnwanted:
			then(errStale)
		default:
			c.doDelete(step, deadline, then)
		}
	}}}, func() {})
}
