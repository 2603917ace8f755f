// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

// Why nothing can be answered.
var (
	errNotLeading = errors.New("another process of Moorage's extender leads, or none does yet; it will be tried again")
	errReading    = errors.New("Moorage is still reading which volumes are where; it will be tried again")
)

// term is a time during which this process leads.
type term struct {
	ctx   context.Context // ends with it
	until func() time.Time

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

// lead serves for one term, which ends with ctx; until is when the lease runs out. A bind of the
// leader before has had its effect by now, or never will (see internal/lead): lead takes it in
// before it answers. It returns when no bind is under way any more.
func (x *extender) lead(ctx context.Context, until func() time.Time) error {
	t := &term{ctx: ctx, until: until}
	if err := x.Facts.WaitForSync(ctx); err != nil {
		return err
	}
	if err := x.Facts.CatchUp(ctx); err != nil {
		return err
	}
	x.term.Store(t)
	defer t.close()
	klog.FromContext(ctx).Info("Leading")
	if x.Announce != nil {
		x.Announce.Lead(ctx, until)
	}
	<-ctx.Done()
	return nil
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
	}
	return t, nil
}
