// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Why nothing can be answered.
var (
	errNotLeading = errors.New("another process of Moorage's extender leads, or none does yet; it will be tried again")
	errReading    = errors.New("Moorage is still reading which volumes are where; it will be tried again")
	errTakingOver = errors.New("Moorage's extender is withdrawing what an earlier one reserved; it will be tried again")
)

// takeOverPatience is how long a leader answers nobody at most because of what an
// earlier one reserved: one pod that can't be written keeps no other waiting.
const takeOverPatience = 10 * time.Second

// term is a time during which this process leads.
type term struct {
	ctx     context.Context // ends with it
	until   func() time.Time
	settled atomic.Bool // what an earlier leader reserved is withdrawn

	// binding is held for reading by each bind, and for writing by the end.
	binding sync.RWMutex
	over    bool
}

// begin says whether a bind may begin; it ends with end.
func (t *term) begin() bool {
	t.binding.RLock()
	over := t.over
	if over {
		t.binding.RUnlock()
	}
	return !over
}

func (t *term) end() { t.binding.RUnlock() }

// close returns when no bind is under way any more, and none can begin.
func (t *term) close() {
	t.binding.Lock()
	defer t.binding.Unlock()
	t.over = true
}

// lead serves for one term, which ends with ctx; until is when the lease runs
// out. It first withdraws what an earlier leader reserved for pods that were
// never bound, for so long at most, and returns when no bind is under way any more.
// What can't be withdrawn in that time counts until it is.
func (x *extender) lead(ctx context.Context, until func() time.Time) error {
	t := &term{ctx: ctx, until: until}
	x.term.Store(t)
	defer t.close()
	if err := x.Facts.WaitForSync(ctx); err != nil {
		return err
	}
	x.book.Lead(x.Name)
	late := time.After(takeOverPatience)
	for left := x.leftovers(); left > 0; left = x.leftovers() {
		select {
		case <-ctx.Done():
			return nil
		case <-x.changed:
			continue
		case <-late:
			klog.FromContext(ctx).Error(errTakingOver, "Reservations of an earlier leader can't be withdrawn, and count on", "number", left)
		}
		break
	}
	t.settled.Store(true)
	klog.FromContext(ctx).Info("Leading", "tickets", x.Name)
	if x.Announce != nil {
		x.Announce.Lead(ctx, until)
	}
	<-ctx.Done()
	return nil
}

// leftovers counts the tickets of pods without a node that this process did not
// write.
func (x *extender) leftovers() int {
	s, count := x.Facts.Snapshot(), 0
	for t := range s.Tickets() {
		if t.Scheduler != x.Name || t.Type != ledger.TypePod || t.Ghost || t.UID == "" || x.book.Of(t.Pod) != nil {
			continue
		}
		// The ticket of a pod that is gone ends with it.
		if pod := s.PodOf(t); pod != nil && pod.Node == "" {
			count++
		}
	}
	return count
}

// warm says whether this process could lead at once, or why not.
func (x *extender) warm() error {
	if !x.Facts.HasSynced() || x.nominees != nil && !x.nominees.informer.HasSynced() {
		return errReading
	}
	return nil
}

// leading returns the term in which requests are answered, or why none is.
func (x *extender) leading() (*term, error) {
	t := x.term.Load()
	switch {
	case t == nil || t.ctx.Err() != nil: // none yet, or over
		return nil, errNotLeading
	case x.warm() != nil:
		return nil, errReading
	case !t.settled.Load():
		return nil, errTakingOver
	}
	return t, nil
}
