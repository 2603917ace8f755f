// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"context"
	"slices"
	"sync"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
)

// unreportedForced are forced detaches without a known event: those in the holds at the term's beginning,
// since the former leader may have ended before the event, and those whose failed request may have been
// carried out. Safe for parallel use.
type unreportedForced struct {
	mu     sync.Mutex
	fences map[ledger.VolumeID][]ledger.Fence
}

// begin reads the holds before this term writes them. A hold with another node as its only one was written
// after the report: its detach is not reported again when the event has expired (an hour).
func (u *unreportedForced) begin(s ledger.Snapshot) {
	for v := range s.Volumes() {
		if v.Hold == nil {
			continue
		}
		for _, f := range v.Hold.Fences {
			movedOn := v.Hold.Node != "" && v.Hold.Node != f.Node && v.Hold.State != ledger.HoldUnknown
			if !movedOn && rules.Taken(v, f) {
				u.add(v.ID, f)
			}
		}
	}
}

func (u *unreportedForced) any() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.fences) > 0
}

func (u *unreportedForced) told(events report.ForcedDetaches) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for v, fences := range u.fences {
		u.keep(v, slices.DeleteFunc(fences, func(f ledger.Fence) bool { return events.Has(v, f) }))
	}
}

func (u *unreportedForced) add(v ledger.VolumeID, f ledger.Fence) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.fences == nil {
		u.fences = map[ledger.VolumeID][]ledger.Fence{}
	}
	if !slices.ContainsFunc(u.fences[v], func(is ledger.Fence) bool { return sameDetach(is, f) }) {
		u.fences[v] = append(u.fences[v], f)
	}
}

// take returns and forgets a volume's completed detaches, and forgets those no longer asked for.
func (u *unreportedForced) take(id ledger.VolumeID, s ledger.Snapshot) (taken []ledger.Fence) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.fences[id]) == 0 {
		return nil
	}
	v := s.Volume(id)
	u.keep(id, slices.DeleteFunc(u.fences[id], func(f ledger.Fence) bool {
		if v == nil || rules.Taken(v, f) {
			taken = append(taken, f)
			return true
		}
		now, says := v.Hold.Fence(f.Node)
		return !says || !sameDetach(now, f)
	}))
	return taken
}

func (u *unreportedForced) forget(v ledger.VolumeID, f ledger.Fence) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keep(v, slices.DeleteFunc(u.fences[v], func(is ledger.Fence) bool { return sameDetach(is, f) }))
}

// keep sets the rest. The caller holds mu.
func (u *unreportedForced) keep(v ledger.VolumeID, left []ledger.Fence) {
	if len(left) == 0 {
		delete(u.fences, v)
		return
	}
	u.fences[v] = left
}

func sameDetach(a, b ledger.Fence) bool {
	return a.Node == b.Node && a.Attachment == b.Attachment && a.Rule == b.Rule
}

func fenceOf(s ledger.Snapshot, step rules.Step) ledger.Fence {
	is := ledger.Fence{Node: step.Node, NodeUID: step.NodeUID, Attachment: step.UID, Rule: step.Rule}
	if v := s.Volume(step.Volume); v != nil {
		if f, says := v.Hold.Fence(step.Node); says && sameDetach(f, is) {
			return f
		}
	}
	return is
}

func (c *Controller) tellForced(ctx context.Context, id ledger.VolumeID, s ledger.Snapshot) {
	for _, f := range c.unreportedForced.take(id, s) {
		if c.config.Events.ForcedDetach(ctx, id, f) {
			c.config.Metrics.Forced(f.Rule)
		}
	}
}

func (c *Controller) forced(ctx context.Context, id ledger.VolumeID, f ledger.Fence, err error) {
	if err != nil {
		c.unreportedForced.add(id, f)
		return
	}
	c.unreportedForced.forget(id, f)
	c.config.Events.ForcedDetach(ctx, id, f)
}
