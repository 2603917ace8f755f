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

// takeOverPatience is the longest wait of a term's first grant. Later take-overs continue in the
// background.
const takeOverPatience = 10 * time.Second

const takeOverTries = 3

// takeOver tries all tickets in doubt before a term's first grant, so that grants follow the rank. Failed
// tickets go to the queue, which retries with growing pauses and logs at error level.
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
		k.rest.Add(id) // those still in doubt
	}
}

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

// takeOverOne writes the term's epoch into a ticket in doubt: an older leader's grant in flight then fails
// on the version.
func (k *Keeper) takeOverOne(ctx context.Context, t *ledger.Ticket) error {
	object, ok := k.config.Cache.Ticket(t.ID)
	if !ok || string(object.UID) != t.UID {
		return nil // its end is in flight
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
