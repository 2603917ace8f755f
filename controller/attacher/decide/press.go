// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"container/list"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
)

// Each attachment that fails backs off on its own, up to minutes. When the driver
// pushes everybody back, because it is throttled or away, those pauses say nothing
// of the volumes, and are too long once it takes calls again. A crowd is therefore
// tried for as a whole: one of it at least every probeEvery, and on each success
// two more, so that all have had their turn after as many rounds of calls as their
// number has binary digits, and never more of them at once than the driver has
// just shown to take.

const (
	// crowd is how many attachments must have been pushed back, and no call have
	// succeeded in between, to say something of the driver.
	crowd = 3
	// probeEvery is the longest time that a driver which pushes back is not asked.
	probeEvery = 30 * time.Second
	// easedBy is how many are tried again for one that has succeeded.
	easedBy = 2
	// maxEased is how often an attachment of a crowd is: a driver that takes so
	// many calls and no more refuses every other of them. Who is refused more often
	// has a trouble of its own.
	maxEased = 8
)

// pushBack are the attachments whose last call the driver has pushed back.
type pushBack struct {
	// line has those of a crowd, which are tried again early: whoever waits longest
	// first.
	line list.List
	// streak has those that were pushed back since the last success, until they
	// are a crowd.
	streak map[*record]struct{}
	// crowded: no call has succeeded since there was one.
	crowded bool
	// probe is when the next of a crowd is due by itself.
	probe time.Time
}

// Crowded says whether the driver pushes everybody back: what it says of one
// volume it says of all.
func (b *Book) Crowded() bool { return b.press.crowded }

// pushedBack takes note that a call has ended with a code that PushesBack, after
// the backoff has been set.
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

// isCrowd says whether attachments that were pushed back say something of the
// driver. Those of one node that has no room say something of the node.
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

// succeeded takes note of a success, and lets those try again at once whose turn it
// is. It returns their volumes.
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
