// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"container/list"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
)

// Each failed attachment backs off by itself, up to minutes. When the driver pushes all back, these pauses
// say nothing about the volumes, and are too long afterwards. A crowd is therefore tried as a whole: one
// call every probeEvery, and two more on each success.

const (
	// crowd is how many pushed-back attachments, without a success, allow a conclusion about the driver.
	crowd = 3
	// probeEvery is the longest pause between calls to a driver that pushes back.
	probeEvery = 30 * time.Second
	easedBy    = 2
	// maxEased limits the extra tries of an attachment: a driver with a fixed capacity refuses every second
	// one. More refusals are the attachment's own trouble.
	maxEased = 8
)

// pushBack has the attachments whose last call the driver has pushed back.
type pushBack struct {
	// line has a crowd's attachments, for an early try: the longest wait first.
	line list.List
	// streak has the push-backs since the last success, before a crowd.
	streak map[*record]struct{}
	// crowded: no call has succeeded since the crowd.
	crowded bool
	probe   time.Time
}

// Crowded says whether the driver pushes all back.
func (b *Tracker) Crowded() bool { return b.press.crowded }

// pushedBack comes after the backoff is set.
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

// isCrowd: push-backs tell about the driver. A full node's tell only about the node.
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

func (p *pushBack) leave(r *record) {
	delete(p.streak, r)
	if r.spot != nil {
		p.line.Remove(r.spot)
	}
	if p.line.Len() == 0 {
		p.crowded = false
	}
}

// succeeded lets the next in turn try again now, and returns their volumes.
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
