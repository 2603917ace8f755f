// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/execute"
	"github.com/moorage-dev/moorage/internal/flow"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/work"
)

// Cache is what is known: package observe has it.
type Cache interface {
	Snapshot() ledger.Snapshot
	Apply(ledger.Event)
	Ticket(ledger.TicketID) (*v1alpha1.VolumeTicket, bool)
}

// Writer is how things are written: package execute has it.
type Writer interface {
	Carry(context.Context, flow.Task, execute.Status) error
}

// Config is what a Controller works with.
type Config struct {
	Cache   Cache
	Write   Writer
	Arbiter arbiter.Arbiter
	Now     func() time.Time
	Metrics *report.Metrics // may be nil
	Events  *report.Events  // may be nil
}

// Validate says what is missing.
func (c Config) Validate() error {
	if c.Cache == nil || c.Write == nil || c.Now == nil {
		return errors.New("ticket: Cache, Write and Now are needed")
	}
	return nil
}

// grantsName is what logs call the queue of nodes.
const grantsName = "grants"

// Controller grants and ends tickets. Add is safe for parallel use.
type Controller struct {
	config Config
	nodes  *work.Queue[ledger.NodeName] // pending tickets, one node at a time
	rest   *work.Queue[ledger.TicketID] // tickets, apart from decisions
	ttl    *ages
	// refused are the pauses of tickets whose decisions could not be written.
	refused  refused
	deciding deciding

	placings placings
	// tookOver says that every ticket in doubt has been tried once.
	tookOver atomic.Bool
}

// New returns a Controller that is ready to Run.
func New(config Config) (*Controller, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	c := &Controller{config: config, ttl: newAges()}
	c.nodes = work.New(grantsName, c.grantAt)
	c.rest = work.NewInTurns("tickets", func(id ledger.TicketID) string { return id.Namespace }, c.reconcile)
	return c, nil
}

// Add has a ticket looked at, at once.
func (c *Controller) Add(id ledger.TicketID) { c.rest.Add(id) }

// AddNode has the pending tickets of a node looked at, at once.
func (c *Controller) AddNode(n ledger.NodeName) { c.nodes.Add(n) }

// Run works until ctx is done, and returns when the last write is answered or
// cancelled. Tickets of so many nodes are decided at once, after those in doubt
// have been taken over, and so many others looked after.
func (c *Controller) Run(ctx context.Context, nodes, others int) {
	var running sync.WaitGroup
	running.Go(func() {
		c.takeOver(ctx, nodes)
		c.nodes.Run(ctx, nodes)
	})
	running.Go(func() { c.rest.Run(ctx, others) })
	running.Wait()
}
