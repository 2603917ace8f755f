// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

var errNotSent = errors.New("not sent")

// bounded sets the earliest deadline: the timeout, the end of the lease, or until, if set. An earlier end
// of ctx does not end the request.
func (e *Executor) bounded(ctx context.Context, until time.Time) (context.Context, context.CancelFunc, error) {
	now := e.config.Now()
	deadline := now.Add(e.config.Timeout)
	if lease := e.config.Lease(); !lease.IsZero() && lease.Before(deadline) {
		deadline = lease
	}
	if !deadline.After(now) {
		return nil, nil, ErrNoLease
	}
	if !until.IsZero() && until.Before(deadline) {
		deadline = until
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	return ctx, cancel, nil
}

// call makes one request in its turn. A sent request goes on when ctx is done: the API server might carry
// it out after the lease was handed over.
func call[T any](ctx context.Context, e *Executor, until time.Time, request func(context.Context) (T, error)) (T, error) {
	return callIn(ctx, e, e.config.Turn, until, request)
}

func callIn[T any](ctx context.Context, e *Executor, turn func(context.Context) error, until time.Time, request func(context.Context) (T, error)) (T, error) {
	var none T
	if err := turn(ctx); err != nil {
		return none, fmt.Errorf("%w: no turn for another request: %w", errNotSent, err)
	}
	if ctx.Err() != nil {
		return none, fmt.Errorf("%w: %w", errNotSent, context.Cause(ctx))
	}
	bounded, cancel, err := e.bounded(ctx, until)
	if err != nil {
		return none, err
	}
	defer cancel()
	answer, err := request(bounded)
	if mayFollow(err) {
		e.unsettled.extend(e.config.Now().Add(e.outlast()))
	}
	return answer, err
}

type unanswered struct {
	mu    sync.Mutex
	until time.Time
}

func (u *unanswered) extend(until time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if until.After(u.until) {
		u.until = until
	}
}

// OutlastUnanswered is how long a request without an answer may still have an effect; 0 or less: none may.
// Before a hand-over of the lease this time must pass, after the last call of Do.
func (e *Executor) OutlastUnanswered() time.Duration {
	e.unsettled.mu.Lock()
	defer e.unsettled.mu.Unlock()
	return e.unsettled.until.Sub(e.config.Now())
}

// margin is the timeout's part that is added for the way.
const margin = 10

// outlast is how long a request may have an effect: the API server's timeout begins when the request
// arrives.
func (e *Executor) outlast() time.Duration { return e.config.Timeout + e.config.Timeout/margin }
