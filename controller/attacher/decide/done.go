// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"
	"time"

	"google.golang.org/grpc/codes"
)

// movedTries limits a write's immediate repetitions when its object has changed.
const movedTries = 3

// Start notes a step's begin. From now on the volume may be where the call takes it.
func (b *Tracker) Start(s Step, now time.Time) {
	r := b.records[s.UID]
	if r == nil {
		return
	}
	r.running = s.Do
	if s.Do == Stamp {
		r.sentID = s.NodeID
	}
	if !s.Do.Call() {
		return
	}
	b.press.leave(r)
	r.lastCall = now
	r.sight = unseen
	switch s.Do {
	case Publish:
		r.atID = s.NodeID
		r.evidence, r.proved = Unknown, false
	case Unpublish:
		r.evidence, r.proved, r.rejected = Unknown, false, false
	default: // any other step changes no fact about the volume
	}
}

// Done takes a step's end, after all objects and answers seen meanwhile. It returns the volumes for new
// decisions.
func (b *Tracker) Done(s Step, result Result, now time.Time) []VolumeID {
	r := b.records[s.UID]
	if r == nil {
		return nil
	}
	r.running = 0
	touched := []VolumeID{key(&r.Attachment)}
	switch s.Do {
	case Publish:
		r.lastCall = now
		b.published(r, s, result, now)
		touched = append(touched, b.answered(r, result, now)...)
	case Unpublish:
		r.lastCall = now
		if id, ok := b.unpublished(r, s, result, now); ok {
			touched = append(touched, id)
		}
		touched = append(touched, b.answered(r, result, now)...)
	case Look:
		r.see(result)
	case ReadSecret:
		if r.secret = result.Failed.IsZero(); !r.secret {
			r.fail(s, result.Failed, now, &b.rules)
		}
	case ReportAttach, ReportDetach:
		if r.told = result.Failed.IsZero(); !r.told {
			r.unshown++
			r.showAgain = now.Add(b.rules.Backoff.After(r.unshown, b.rules.Random()))
		}
	default:
		r.wrote(s, result, now, &b.rules)
	}
	b.dropForgotten(r)
	return touched
}

func (b *Tracker) answered(r *record, result Result, now time.Time) []VolumeID {
	switch code := result.Failed.Code; {
	case result.Failed.IsZero():
		return b.press.succeeded()
	case PushesBack(code):
		b.press.pushedBack(r, now)
	}
	return nil
}

func (b *Tracker) published(r *record, s Step, result Result, now time.Time) {
	r.secret = false
	if !result.Failed.IsZero() {
		r.doubted = r.doubted || !Rejected(result.Failed.Code)
		r.fail(s, result.Failed, now, &b.rules)
		if result.Failed.Code == codes.ResourceExhausted {
			b.isFull(r)
		}
		return
	}
	r.evidence, r.context = Published, result.Context
	r.doubted, r.rejected = false, false
	r.succeed()
	b.notFull(r)
}

// unpublished returns the volume of an attachment that now has room at the node.
func (b *Tracker) unpublished(r *record, s Step, result Result, now time.Time) (VolumeID, bool) {
	r.secret = false
	if result.Failed.IsZero() {
		r.evidence, r.proved, r.context, r.atID = Absent, true, nil, ""
		r.doubted, r.left = false, false
		r.succeed()
		b.notFull(r)
		b.layGhosts(r, s.NodeID)
		return b.room(r.Node)
	}
	r.rejected = Rejected(result.Failed.Code)
	r.doubted = r.doubted || !r.rejected
	r.fail(s, result.Failed, now, &b.rules)
	return "", false
}

func (b *Tracker) layGhosts(r *record, nodeID string) {
	for _, ghost := range slices.Clone(b.volumes[key(&r.Attachment)].records) {
		if ghost.gone && ghost.Node == r.Node && ghost.volumeID() == nodeID {
			b.drop(ghost)
		}
	}
}

func (r *record) see(result Result) {
	switch {
	case !result.Failed.IsZero():
		r.looked = true
	case result.There:
		r.sight = there
	default:
		r.sight = missing
	}
}

// wrote takes a write's end. An answer that is about to be written is never asked for again.
func (r *record) wrote(s Step, result Result, now time.Time, rules *Rules) {
	if s.Do == Stamp && result.Moved && r.Stamped && r.evidence == Absent {
		r.evidence, r.proved, r.doubted = Unknown, false, true // a foreign finalizer, and call
	}
	switch {
	case result.Failed.IsZero() && (s.Do == StampPV || s.Do == Stamp):
		r.moved = 0
	case result.Failed.IsZero():
		r.succeed()
	case result.Moved && r.moved < movedTries:
		r.moved++
	case s.Do == StampPV || s.Do == Stamp:
		r.fail(s, result.Failed, now, rules)
	case result.Moved:
		r.fail(s, result.Failed, now, rules) // refused for its content
	default:
		r.fail(s, Reason{}, now, rules)
	}
}
