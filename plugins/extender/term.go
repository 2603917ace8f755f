// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/lead"
	"github.com/moorage-dev/moorage/plugins/internal/binding"
)

// Why nothing can be answered.
var (
	errNotLeading = errors.New("another process of Moorage's extender leads, or none does yet; it will be tried again")
	errReading    = errors.New("Moorage is still reading which volumes are where; it will be tried again")
)

// catchUpAgain is the pause after a new leader could not read what it decides from.
const catchUpAgain = time.Second

// term is a time during which this process leads.
type term struct {
	ctx    context.Context // ends with it
	binder *binding.Binder // sends its requests
}

// lead serves for one term, which ends with ctx. A bind of the leader before has had its effect by
// now, or never will (see internal/lead): lead takes it in before it answers. It returns when the
// outcome of each bind is known, or with lead.ErrUnsettled.
func (x *extender) lead(ctx context.Context, led lead.Term) error {
	if err := x.Facts.WaitForSync(ctx); err != nil {
		return err
	}
	log := klog.FromContext(ctx)
	err := wait.PollUntilContextCancel(ctx, catchUpAgain, true, func(ctx context.Context) (bool, error) {
		err := x.Facts.CatchUp(ctx)
		if err != nil {
			log.Error(err, "Nobody is answered yet: what claims volumes can't be read; it is read again")
		}
		return err == nil, nil
	})
	if err != nil {
		return nil // ctx is done, and nothing was bound
	}
	t := &term{ctx: ctx, binder: x.binder(led.Until)}
	x.term.Store(t)
	log.Info("Leading")
	if x.Announce != nil {
		x.Announce.Lead(ctx, led.Until)
	}
	<-ctx.Done()
	settling, cancel := context.WithTimeout(wait.ContextForChannel(led.Lost), binding.RequestTimeout)
	defer cancel()
	if err := t.binder.Settle(settling); err != nil {
		return fmt.Errorf("%w: %w", lead.ErrUnsettled, err)
	}
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
