// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/internal/lead"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/tickets"
	"github.com/moorage-dev/moorage/internal/write"
	"github.com/moorage-dev/moorage/plugins/internal/binding"
)

// Grants have no limit per second, messages to waiting tickets have.
const (
	nodesAtOnce    = 4
	ticketsAtOnce  = 8
	toldPerSecond  = 50
	toldInOneBurst = 100
)

type ticketWriter struct {
	kube    kubernetes.Interface
	moorage client.Interface
}

// DecideTickets prepares the decisions on VolumeTickets, after CatchUp and before the first pod is placed.
// decide works until ctx is done, and returns after the last write. Without the plugin in a profile it does
// nothing.
func (f *Factory) DecideTickets(ctx context.Context, term lead.Term) (decide func(), err error) {
	core, observer := f.made()
	if core == nil {
		return func() {}, nil
	}
	executor, err := write.New(write.Config{
		Kube: f.writer.kube, Moorage: f.writer.moorage, Observer: observer, Events: report.NewEvents(ctx, f.writer.kube),
		Timeout: binding.RequestTimeout, Lease: term.Until, Epoch: term.Epoch, Token: func() string { return string(uuid.NewUUID()) },
	})
	if err != nil {
		return nil, err
	}
	core.executor.Store(executor)
	// The mode changes the steps of attaches and detaches, but no grant.
	keeper, err := tickets.New(tickets.Config{
		Cache: observer, Write: executor, Arbiter: core.arbiter, Now: core.now, Order: &core.placer.Order, Waits: &core.placer.Waits,
		Turn: flowcontrol.NewTokenBucketRateLimiter(toldPerSecond, toldInOneBurst).Wait,
	})
	if err != nil {
		return nil, err
	}
	core.placer.Before(keeper.Before)
	touched := func(t ledger.Touched) {
		if ctx.Err() == nil {
			keeper.Touched(t)
		}
	}
	observer.Subscribe(touched)
	core.placer.Subscribe(touched)
	return func() { keeper.Run(ctx, nodesAtOnce, ticketsAtOnce) }, nil
}

// doubtTickets has the ledger count the grants that an earlier leader may have sent.
func (c *core) doubtTickets() {
	for _, e := range protocol.Doubts(c.facts.Snapshot()) {
		c.facts.Apply(e)
	}
}

// settleTickets waits until no write of a ticket can have an effect.
func (c *core) settleTickets(ctx context.Context) error {
	executor := c.executor.Load()
	if executor == nil {
		return nil
	}
	left := executor.OutlastUnanswered()
	if left <= 0 {
		return nil
	}
	select {
	case <-time.After(left):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("a write of a VolumeTicket got no answer: %w", errors.Join(binding.ErrUnsettled, ctx.Err()))
	}
}
