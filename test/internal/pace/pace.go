// SPDX-License-Identifier: Apache-2.0

// Package pace makes the requests of a load: so many at a time, or on a beat.
package pace

import (
	"context"
	"sync"
	"time"
)

type Rate struct {
	// Hands is the maximum of parallel requests.
	Hands int
	// Every is the time between two starts, whether or not the earlier request is done; 0: as soon as a
	// hand is free.
	Every time.Duration
}

// Each calls do for 0 to n-1, in parallel, until a call fails. It waits for all begun calls, and returns
// the first error, or the cause of the context's end.
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

func beats(every time.Duration) (<-chan time.Time, func()) {
	if every <= 0 {
		return nil, func() {}
	}
	ticker := time.NewTicker(every)
	return ticker.C, ticker.Stop
}
