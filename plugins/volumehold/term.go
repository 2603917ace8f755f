// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"errors"
	"time"

	"github.com/moorage-dev/moorage/internal/watch"
	"github.com/moorage-dev/moorage/plugins/internal/binding"
)

// The methods in this file are for a process that elects its own leader, as plugins/scheduler does.
// kube-scheduler's main function calls none of them: a Binding may then last as long as its request, under
// any leader.

// made returns the plugins' core and observer; nil if no profile enables the plugin.
func (f *Factory) made() (*core, *watch.Observer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.core, f.observer
}

// Shared returns the facts and the Placer for the process's extender. It returns nil if no profile enables
// the plugin.
func (f *Factory) Shared() (*watch.Observer, *binding.Placer) {
	core, observer := f.made()
	if core == nil {
		return nil, nil
	}
	return observer, core.placer
}

// WaitForSync returns when the plugin's caches are complete. Its error is ctx's.
func (f *Factory) WaitForSync(ctx context.Context) error {
	if _, observer := f.made(); observer != nil {
		return observer.WaitForSync(ctx)
	}
	return nil
}

// CatchUp reads the plugin's facts by consistent lists. A new leader calls it before it schedules, when no
// write of the last leader can be in flight any more. From then on each Binding ends before the lease does:
// until returns the present end of the lease, or the zero time without leader election.
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

// Settle stops further binds, and waits until the outcome of each Binding is known, and no write of a
// ticket can be in flight. It returns an error if ctx is done before.
func (f *Factory) Settle(ctx context.Context) error {
	if core, _ := f.made(); core != nil {
		return errors.Join(core.placer.Binder.Settle(ctx), core.settleTickets(ctx))
	}
	return nil
}
