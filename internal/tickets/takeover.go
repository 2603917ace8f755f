// SPDX-License-Identifier: Apache-2.0

package tickets

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
)

// takeOverPatience is how long the first grant of a term waits at most for pending
// tickets to be taken over. What is left then goes on in the background, and is
// granted later than others.
const takeOverPatience = 10 * time.Second

// takeOverTries is how often one ticket's take-over is tried before the first
// grant, when the ticket changes meanwhile.
const takeOverTries = 3

// takeOver tries to take over each ticket in doubt, so many at once, before the
// first grant of a term: who ranks first is then granted first. Whatever it can't
// write it leaves to the queue, which tries again with longer and longer pauses, and
// says each time at error level why not.
func (k *Keeper) takeOver(ctx context.Context, workers int) {
	ctx, cancel := context.WithTimeout(ctx, takeOverPatience)
	defer cancel()
	var doubted []ledger.TicketID
	for t := range k.config.Cache.Snapshot().Tickets() {
		if t.InDoubt {
			doubted = append(doubted, t.ID)
		}
	}
	var running sync.WaitGroup
	next := make(chan ledger.TicketID)
	for range max(1, workers) {
		running.Go(func() {
			for id := range next {
				k.takeOverSoon(ctx, id)
			}
		})
	}
	for _, id := range doubted {
		next <- id
	}
	close(next)
	running.Wait()
	for _, id := range doubted {
		k.rest.Add(id) // those that are still in doubt
	}
}

// takeOverSoon takes one ticket over, unless it takes more than a few tries.
func (k *Keeper) takeOverSoon(ctx context.Context, id ledger.TicketID) {
	for range takeOverTries {
		t := k.config.Cache.Snapshot().Ticket(id)
		if ctx.Err() != nil || t == nil || !t.InDoubt {
			return
		}
		if err := k.takeOverOne(ctx, t); err != nil && !errors.Is(err, protocol.ErrStale) {
			klog.FromContext(ctx).Error(err, "A ticket is not taken over, and not granted before it is; others are", "ticket", id)
			return
		}
	}
}

// takeOverOne writes the term's epoch into a ticket in doubt: a grant that an older
// leader has in flight fails then, because the ticket's version has changed.
func (k *Keeper) takeOverOne(ctx context.Context, t *ledger.Ticket) error {
	object, ok := k.config.Cache.Ticket(t.ID)
	if !ok || string(object.UID) != t.UID {
		return nil // its end is on its way
	}
	err := k.config.Write.Carry(ctx, protocol.Renew(t), func(r protocol.Request) (*v1alpha1.VolumeTicket, error) {
		next := object.DeepCopy()
		next.Status.Epoch = max(r.Epoch, object.Status.Epoch+1)
		return next, nil
	})
	if err != nil {
		return fmt.Errorf("take the ticket over: %w", err)
	}
	return nil
}
