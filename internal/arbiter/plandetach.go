// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// release plans the next step that takes the volume from a place that does
// not want it: the safe detach of DESIGN.md section 7, one step at a time.
func (p *planner) release(place *ledger.Place) {
	va := place.Canonical()
	if va == nil && !place.Reported || foreign(p.v.ID, place) {
		return
	}
	node := p.s.Node(place.Node)
	p.removePods(node, place)
	if left := p.delayed(node, place); left > 0 {
		p.recheck(left)
		return
	}
	verdict, rule := p.SafeToDetach(p.s, p.v, place, p.now)
	if !verdict.Allowed() {
		if f := force(p.s, p.v, place, p.now); f.Rule != "" {
			p.recheck(f.Left)
		}
		return
	}
	p.detach(node, place, va, rule)
}

// detach plans the step that the proofs so far allow.
func (p *planner) detach(node *ledger.Node, place *ledger.Place, va *ledger.Attachment, rule string) {
	step := Step{Node: place.Node, Rule: rule}
	if va != nil {
		step.Attachment, step.UID, step.Version = va.Name, va.UID, va.Version
	}
	proof := place.Proof.Stage
	switch {
	case va != nil && va.Deleting && !place.Reported:
		return // the attacher's turn
	case place.Reported || proof == ledger.ProofNone:
		step.Do = Unreport
		if node != nil && node.Exists {
			step.NodeUID, step.NodeVersion = node.UID, node.Version
		}
	case proof == ledger.ProofUnwanted || rule == OutOfService || rule == AfterUnreachable:
		step.Do = DeleteAttachment // pods of a fenced node no longer count
	default:
		step.Do = ConfirmUnwanted
	}
	if step.Do == DeleteAttachment && va == nil {
		return
	}
	p.add(step)
}

// delayed is for how long an unwanted volume is still kept at its node: the
// policy's detachDelay, unless somebody wants the volume, the node has no
// slot to spare, is not ready or is being drained, or the volume goes away.
func (p *planner) delayed(node *ledger.Node, place *ledger.Place) time.Duration {
	policy := policyOf(p.s, p.v)
	left := policy.DetachDelay - p.now.Sub(place.Idle)
	va := place.Canonical()
	if left <= 0 || place.Idle.IsZero() || va == nil || va.Deleting || !ready(node) || node.Draining {
		return 0
	}
	if p.excl && (p.hold.Next.Node != "" || p.hold.Node != place.Node) || p.source() == "" {
		return 0
	}
	state := node.Driver(p.v.ID.Driver)
	if limit := Limit(state, PolicyFor(p.s, p.v.ID.Driver, "")); limit != ledger.NoLimit && state.Used >= limit {
		return 0
	}
	return left
}

// removePods plans the removal of the terminating pods that use the volume at
// an out-of-service node, which pod garbage collection would only do later.
func (p *planner) removePods(node *ledger.Node, place *ledger.Place) {
	if node == nil || !node.Exists || !node.OutOfService || ready(node) {
		return
	}
	for _, u := range place.Users {
		if u.Pod != "" && stand(p.s, u) == leaving {
			p.add(Step{Do: RemovePod, Node: place.Node, UID: u.Pod})
		}
	}
}
