// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"container/list"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
)

// Each attachment that fails backs off on its own, up to minutes. When the driver pushes all back,
// because it is throttled or away, those pauses say nothing about the volumes, and are too long
// once it takes calls again. A crowd is therefore tried as a whole: at least one call every
// probeEvery, and on each success two more. All have had their turn after as many rounds as their
// number has binary digits, and there are never more at once than the driver has just shown to
// take.

const (
	// crowd is how many attachments must have been pushed back, without a success in between, for a
	// conclusion about the driver.
	crowd = 3
	// probeEvery is the longest time without a call to a driver that pushes back.
	probeEvery = 30 * time.Second
	// easedBy is how many are tried again for each success.
	easedBy = 2
	// maxEased is how often an attachment of a crowd is eased: a driver with a fixed capacity
	// refuses every second one. More refusals are the attachment's own trouble.
	maxEased = 8
)

// pushBack has the attachments with a last call that the driver has pushed back.
type pushBack struct {
	// line has the attachments of a crowd, which are tried again early: the longest wait first.
	line list.List
	// streak has the attachments pushed back since the last success, until they are a crowd.
	streak map[*record]struct{}
	// crowded: no call has succeeded since there was a crowd.
	crowded bool
	// probe is when the next of a crowd is due by itself.
	probe time.Time
}

// Crowded says whether the driver pushes all back: a push-back for one volume is for all.
func (b *Tracker) Crowded() bool { return b.press.crowded }

// pushedBack notes that a call has ended with a code that PushesBack, after the backoff has been
// set.
func (p *pushBack) pushedBack(r *record, now time.Time) {
	switch {
	case p.crowded:
		r.eased, r.spot = 0, p.line.PushBack(r)
	case r.spared(r.cause.Code):
		r.spot = p.line.PushBack(r)
	default:
		p.join(r)
	}
	if !p.crowded || p.probe.After(now) {
		return
	}
	if limit := now.Add(probeEvery); r.until.After(limit) {
		r.until = limit
	}
	p.probe = r.until
}

// join puts an attachment into the streak, and the streak into the line once it
// is a crowd.
func (p *pushBack) join(r *record) {
	if p.streak == nil {
		p.streak = map[*record]struct{}{}
	}
	p.streak[r] = struct{}{}
	if p.crowded = isCrowd(p.streak); !p.crowded {
		return
	}
	for _, r := range slices.SortedFunc(maps.Keys(p.streak), longerWaiting) {
		r.eased, r.spot = 0, p.line.PushBack(r)
	}
	p.streak = nil
}

// isCrowd says whether pushed-back attachments allow a conclusion about the driver. Attachments of
// a full node allow one about the node.
func isCrowd(streak map[*record]struct{}) bool {
	if len(streak) < crowd {
		return false
	}
	node := ""
	for r := range streak {
		if r.cause.Code != codes.ResourceExhausted || node != "" && r.Node != node {
			return true
		}
		node = r.Node
	}
	return false
}

// leave takes an attachment out: it is tried again, or needs no call any more.
func (p *pushBack) leave(r *record) {
	delete(p.streak, r)
	if r.spot != nil {
		p.line.Remove(r.spot)
	}
	if p.line.Len() == 0 {
		p.crowded = false
	}
}

// succeeded notes a success, and lets the next in turn try again at once. It returns their volumes.
func (p *pushBack) succeeded() []VolumeID {
	p.streak, p.crowded = nil, false
	var ids []VolumeID
	for range easedBy {
		first := p.line.Front()
		if first == nil {
			break
		}
		r := first.Value.(*record)
		p.leave(r)
		r.until = time.Time{}
		r.eased++
		ids = append(ids, key(&r.Attachment))
	}
	return ids
}
