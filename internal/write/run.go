// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
)

type running struct {
	protocol.Task
	status Status // for DecideTicket
}

func (e *Executor) run(ctx context.Context, r running) error {
	var failed error // the last failure of a request
	move := e.next(&r)
	for {
		for _, event := range move.Tell {
			e.config.Observer.Apply(event)
		}
		switch {
		case move.End != protocol.Going:
			return ended(move, failed)
		case move.Send != nil:
			answer, err := e.send(ctx, r, *move.Send)
			if err != nil {
				failed = err
			}
			move = e.answered(&r, answer)
		case !move.Wait.IsZero():
			if err := pause(ctx, move.Wait.Sub(e.config.Now())); err != nil {
				return errors.Join(err, failed) // this term ends
			}
			move = e.next(&r)
		default:
			move = e.next(&r)
		}
	}
}

func (e *Executor) next(r *running) (move protocol.Move) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r.Task, move = e.memory.Next(r.Task, e.snapshot(), e.config.Now())
	return move
}

func (e *Executor) answered(r *running, a protocol.Answer) (move protocol.Move) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r.Task, move = e.memory.Answer(r.Task, a, e.snapshot(), e.config.Now())
	return move
}

func ended(move protocol.Move, failed error) error {
	switch {
	case move.End == protocol.Finished:
		return nil
	case move.End == protocol.Stale:
		return fmt.Errorf("%w: %s", protocol.ErrStale, move.Why)
	case failed != nil:
		return fmt.Errorf("%s: %w", move.Why, failed)
	}
	return errors.New(move.Why)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// Prune forgets attachments and Nodes that are gone.
func (e *Executor) Prune(s ledger.Snapshot) {
	e.lines.prune(s)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.memory.Prune(s)
}
