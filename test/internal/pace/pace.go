// SPDX-License-Identifier: Apache-2.0

// Package pace makes the requests of a load: so many at a time, or on a beat.
package pace

import (
	"context"
	"sync"
	"time"
)

// Rate is how quickly requests are made.
type Rate struct {
	// Hands is how many are under way at a time, at most.
	Hands int
	// Every is the time from one to the next, whether or not the one before is
	// done; 0 to make each as soon as there is a hand for it.
	Every time.Duration
}

// Each calls do for 0 to n-1, in parallel, until one fails, and returns when all
// that were begun are done: what failed first, or the cause of the context's end.
func (r Rate) Each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	beat, stop := beats(r.Every)
	defer stop()
	free := make(chan struct{}, r.Hands)
	var wg sync.WaitGroup
	for i := range n {
		if i > 0 && beat != nil {
			select {
			case <-beat:
			case <-ctx.Done():
			}
		}
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-free }()
			if err := do(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// beats is a ticker's channel; nil without a beat.
func beats(every time.Duration) (<-chan time.Time, func()) {
	if every <= 0 {
		return nil, func() {}
	}
	ticker := time.NewTicker(every)
	return ticker.C, ticker.Stop
}
