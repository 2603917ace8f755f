// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"errors"
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/work"
	"github.com/moorage-dev/moorage/internal/write"
)

// Cache is the view of the cluster; package watch implements it.
type Cache interface {
	Snapshot() ledger.Snapshot
	Ticket(ledger.TicketID) (*v1alpha1.VolumeTicket, bool)
}

// Writer is how things are written: package write has it.
type Writer interface {
	Carry(context.Context, protocol.Task, write.Status) error
}

// Config is what a Controller works with.
type Config struct {
	Cache   Cache
	Write   Writer
	Arbiter rules.Arbiter
	Now     func() time.Time
	Metrics *report.Metrics // may be nil
	Events  *report.Events  // may be nil
}

// Validate names a missing field.
func (c Config) Validate() error {
	if c.Cache == nil || c.Write == nil || c.Now == nil {
		return errors.New("ticket: Cache, Write and Now are needed")
	}
	return nil
}

// Controller looks after tickets. Add is safe for parallel use.
type Controller struct {
	config Config
	queue  *work.Queue[ledger.TicketID]
	ttl    *ages
}

// New returns a Controller that is ready to Run.
func New(config Config) (*Controller, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	c := &Controller{config: config, ttl: newAges()}
	c.queue = work.NewInTurns("tickets", func(id ledger.TicketID) string { return id.Namespace }, c.reconcile)
	return c, nil
}

// Add has a ticket looked at, at once.
func (c *Controller) Add(id ledger.TicketID) { c.queue.Add(id) }

// Depth is how many tickets are due to be looked at. Safe for parallel use.
func (c *Controller) Depth() int { return c.queue.Len() }

// Run works until ctx is done, and returns when the last write is answered or cancelled. It handles workers
// tickets at once.
func (c *Controller) Run(ctx context.Context, workers int) { c.queue.Run(ctx, workers) }
