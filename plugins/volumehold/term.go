// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"errors"
	"time"

	"github.com/moorage-dev/moorage/internal/watch"
	"github.com/moorage-dev/moorage/plugins/internal/binding"
)

// The methods in this file are for a process with its own leader election, as plugins/scheduler.
// kube-scheduler's main function calls none of them: a Binding may then last as long as its request, under
// any leader.

// made returns nil if no profile enables the plugin.
func (f *Factory) made() (*core, *watch.Observer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.core, f.observer
}

// Shared returns the extender's facts and Placer; nil if no profile enables the plugin.
func (f *Factory) Shared() (*watch.Observer, *binding.Placer) {
	core, observer := f.made()
	if core == nil {
		return nil, nil
	}
	return observer, core.placer
}

// WaitForSync returns when the caches are complete. Its error is ctx's.
func (f *Factory) WaitForSync(ctx context.Context) error {
	if _, observer := f.made(); observer != nil {
		return observer.WaitForSync(ctx)
	}
	return nil
}

// CatchUp reads the facts by consistent lists. A new leader calls it before it schedules, when no write of
// the last leader can be in flight. Each later Binding ends before the lease: until returns its present
// end, or the zero time without leader election.
func (f *Factory) CatchUp(ctx context.Context, until func() time.Time) error {
	core, observer := f.made()
	if core == nil {
		return nil
	}
	core.until.Store(&until)
	if err := observer.CatchUp(ctx); err != nil {
		return err
	}
	core.doubtTickets()
	return nil
}

// Settle stops further binds, and waits until each Binding's outcome is known, and no write of a ticket can
// be in flight. It fails if ctx is done before.
func (f *Factory) Settle(ctx context.Context) error {
	if core, _ := f.made(); core != nil {
		return errors.Join(core.placer.Binder.Settle(ctx), core.settleTickets(ctx))
	}
	return nil
}
