// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// errNotSent says that a request was not made.
var errNotSent = errors.New("not sent")

// bounded gives a request its deadline: the timeout, the end of the lease, or until, if set, the
// earliest of them. An earlier end of ctx does not end the request.
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

// call makes one request within its deadline, in its turn. A sent request goes on when ctx is done: the
// API server might carry it out after the lease was handed over.
func call[T any](ctx context.Context, e *Executor, until time.Time, request func(context.Context) (T, error)) (T, error) {
	return callIn(ctx, e, e.config.Turn, until, request)
}

// callIn is call with a turn of its own.
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

// unanswered is until when requests that got no answer may have an effect.
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

// OutlastUnanswered is how long a request without an answer may still have an effect: the API server
// knows the timeout as well. 0 or less: none may. Before a hand-over of the lease this time has to
// pass, once nothing calls Do any more.
func (e *Executor) OutlastUnanswered() time.Duration {
	e.unsettled.mu.Lock()
	defer e.unsettled.mu.Unlock()
	return e.unsettled.until.Sub(e.config.Now())
}

// margin is the part of the timeout that is added to the API server's own limit when a request is
// outlasted: for the way there.
const margin = 10

// outlast is for how long a request without an answer may still have an effect: the
// API server was told the timeout, which begins when the request arrives.
func (e *Executor) outlast() time.Duration { return e.config.Timeout + e.config.Timeout/margin }
