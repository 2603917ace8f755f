// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"errors"
	"sync"

	"github.com/moorage-dev/moorage/internal/bind"
	"github.com/moorage-dev/moorage/internal/execute"
	"github.com/moorage-dev/moorage/internal/flow"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// binder decides on requests to bind pods, one after the other: each has its reservation in
// the ledger before the next is decided on.
type binder struct{ mu sync.Mutex }

var _ bind.Binder = &Controller{}

// Bind binds a pod whose volumes nobody else contends for: see bind.Binder.
func (c *Controller) Bind(ctx context.Context, r bind.Request) error {
	reservation, can := c.reserve(r)
	if !can {
		return bind.ErrUseTicket
	}
	err := c.config.Write.Carry(ctx, flow.Bind(&reservation, r.Version), nil)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, execute.ErrStale), c.config.Cache.Snapshot().Ticket(reservation.ID) == nil:
		return errors.Join(bind.ErrUseTicket, err)
	}
	return err
}

// reserve takes a pod's reservation into the ledger, if it may be bound at once.
func (c *Controller) reserve(r bind.Request) (ledger.Ticket, bool) {
	c.binder.mu.Lock()
	defer c.binder.mu.Unlock()
	s := c.config.Cache.Snapshot()
	pod := s.Pod(string(r.Pod))
	if pod == nil || !c.tookOver.Load() {
		return ledger.Ticket{}, false
	}
	reservation, can := c.config.Arbiter.BindAtOnce(s, pod, ledger.NodeName(r.Node), c.config.Now())
	if can {
		c.config.Cache.Apply(reservation)
	}
	return reservation, can
}
