// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"maps"

	"google.golang.org/grpc/codes"
)

// attach decides if the attachment is not being deleted. The first rule that applies decides.
func (p *pass) attach(r *record) move {
	if r.evidence == Published && r.sight != missing {
		return p.confirm(r)
	}
	if r.Attached && r.maybe() && r.sight != missing {
		return move{}
	}
	if rival := p.rival(r); rival != nil {
		return p.yield(r, rival)
	}
	if why := p.refused(r); !why.IsZero() {
		return move{why: why}
	}
	if why := r.unpublishable(); !why.IsZero() {
		return move{why: why, after: missingGrace}
	}
	if other := p.blocker(r); other != nil {
		return p.blocked(r, other)
	}
	if m, ok := p.backoff(r, false); ok {
		return m
	}
	return p.publish(r)
}

func (p *pass) confirm(r *record) move {
	if r.Attached && r.AttachError.IsZero() && maps.Equal(r.Metadata, r.context) {
		return move{}
	}
	if m, ok := p.backoff(r, false); ok {
		return m
	}
	return do(MarkAttached)
}

// publish puts both finalizers on first. It never publishes at a node's new ID while the volume may be at
// the old ID.
func (p *pass) publish(r *record) move {
	if !r.PVStamped {
		return do(StampPV)
	}
	if p.busy(r) {
		return move{}
	}
	if r.NeedsSecret && !r.secret {
		return do(ReadSecret)
	}
	if r.maybe() && r.volumeID() != r.TargetID {
		return p.call(r, Unpublish, r.volumeID())
	}
	if !r.Stamped || r.NodeID != r.TargetID || r.sentID != "" {
		return move{do: Stamp, nodeID: r.TargetID}
	}
	return p.call(r, Publish, r.TargetID)
}

func (r *record) unpublishable() Reason {
	if !r.NoPublish.IsZero() {
		return r.NoPublish
	}
	if r.TargetID == "" {
		return r.NoTarget
	}
	return Reason{}
}

// outdated: an exclusive volume has changed its node since the attachment's maker looked. Numbers of gone
// attachments do not count: a live migration's target keeps its first number, and a new VolumeHold counts
// from 1 again.
func (p *pass) outdated(r *record) bool {
	return p.exclusive && r.Transitions != 0 && r.Transitions < p.newest
}

// refused: the attachment is outdated. Beside a gone attachment the volume may be there, and a new
// attachment would not help.
func (p *pass) refused(r *record) Reason {
	switch {
	case !p.outdated(r):
		return Reason{}
	case p.former != nil:
		return p.blocked(r, p.former).why
	}
	return Reason{
		Code: codes.FailedPrecondition,
		Message: fmt.Sprintf("refused: made at transition %d of the volume, which is at %d by now; delete this VolumeAttachment",
			r.Transitions, p.newest),
	}
}

// yield lets another attachment of an exclusive volume go first. An unpublish proves that an unreported
// volume is not here. If a gone attachment left the volume, it may be mounted, and leaves with this
// attachment, not by an unpublish.
func (p *pass) yield(r, rival *record) move {
	if r.maybe() && !r.known() && (!r.keeps() || p.outdated(r)) && r.NoUnpublish.IsZero() && r.volumeID() != "" {
		if m, ok := p.backoff(r, true); ok {
			return m
		}
		m := p.call(r, Unpublish, r.volumeID())
		m.detach = true
		return m
	}
	if why := p.refused(r); !why.IsZero() {
		return move{why: why}
	}
	return p.blocked(r, rival)
}

// blocked waits until an exclusive volume is certainly at no other node.
func (p *pass) blocked(r, other *record) move {
	why := fmt.Sprintf("the volume may be at node %s: waiting until VolumeAttachment %s is detached", other.Node, other.Name)
	if !other.cause.IsZero() && other.failedDetach {
		why += ", which failed: " + other.cause.Message
	}
	return move{why: Reason{Code: codes.FailedPrecondition, Message: why}, after: blockedGrace}
}
