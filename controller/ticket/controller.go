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

// Writer writes; package write implements it.
type Writer interface {
	Carry(context.Context, protocol.Task, write.Status) error
}

// Config is a Controller's configuration.
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

// Controller looks after tickets. Add is for parallel use.
type Controller struct {
	config Config
	queue  *work.Queue[ledger.TicketID]
	ttl    *ages
}

// New returns a Controller.
func New(config Config) (*Controller, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	c := &Controller{config: config, ttl: newAges()}
	c.queue = work.NewInTurns("tickets", func(id ledger.TicketID) string { return id.Namespace }, c.reconcile)
	return c, nil
}

// Add has a ticket looked at now.
func (c *Controller) Add(id ledger.TicketID) { c.queue.Add(id) }

// Depth counts the due tickets. Safe for parallel use.
func (c *Controller) Depth() int { return c.queue.Len() }

// Run uses so many workers until ctx is done and the last write is answered or cancelled.
func (c *Controller) Run(ctx context.Context, workers int) { c.queue.Run(ctx, workers) }
