// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// errNotSent says that a request was not made.
var errNotSent = errors.New("not sent")

// bounded gives a request its deadline: the timeout, or the end of the lease or
// ctx's own deadline if that is sooner. That ctx is done before is no reason to
// give it up.
func (e *Executor) bounded(ctx context.Context) (context.Context, context.CancelFunc, error) {
	now := e.config.Now()
	deadline := now.Add(e.config.Timeout)
	if lease := e.config.Lease(); !lease.IsZero() && lease.Before(deadline) {
		deadline = lease
	}
	if !deadline.After(now) {
		return nil, nil, ErrNoLease
	}
	if own, ok := ctx.Deadline(); ok && own.Before(deadline) {
		deadline = own
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline)
	return ctx, cancel, nil
}

// call makes one request within its deadline, once it is its turn. One that was
// sent is not given up when ctx is done: the API server might carry it out after
// the lease was handed over.
func call[T any](ctx context.Context, e *Executor, request func(context.Context) (T, error)) (T, error) {
	var none T
	if err := e.config.Turn(ctx); err != nil {
		return none, fmt.Errorf("%w: no turn for another request: %w", errNotSent, err)
	}
	if ctx.Err() != nil {
		return none, fmt.Errorf("%w: %w", errNotSent, context.Cause(ctx))
	}
	bounded, cancel, err := e.bounded(ctx)
	if err != nil {
		return none, err
	}
	defer cancel()
	answer, err := request(bounded)
	if mayFollow(err) {
		e.unsettled.note(e.config.Now().Add(e.config.Timeout))
	}
	return answer, err
}

// try is call for requests without an answer worth having.
func (e *Executor) try(ctx context.Context, request func(context.Context) error) error {
	_, err := call(ctx, e, func(ctx context.Context) (struct{}, error) { return struct{}{}, request(ctx) })
	return err
}

// mayFollow says whether a write that failed may still have its effect: the
// API server did not refuse it, and may be at it.
func mayFollow(err error) bool {
	if err == nil || errors.Is(err, errNotSent) || errors.Is(err, ErrNoLease) || utilnet.IsConnectionRefused(err) {
		return false
	}
	var refused apierrors.APIStatus
	if errors.As(err, &refused) {
		return refused.Status().Code >= http.StatusInternalServerError
	}
	return true
}

// unsettled is until when requests that got no answer may have an effect.
type unsettled struct {
	mu    sync.Mutex
	until time.Time
}

func (u *unsettled) note(until time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if until.After(u.until) {
		u.until = until
	}
}

// Unsettled is for how long a request that got no answer may still have an
// effect: the API server was told the timeout, too. 0 or less when none may. Who
// hands the lease over waits for that first, once nothing calls Do any more.
func (e *Executor) Unsettled() time.Duration {
	e.unsettled.mu.Lock()
	defer e.unsettled.mu.Unlock()
	return e.unsettled.until.Sub(e.config.Now())
}

// outlast waits until a write whose answer did not come can have no effect any
// more: the API server, which was told the timeout, has given up, too. What it
// may have done before that is there to be read then.
func (e *Executor) outlast(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(e.config.Timeout):
		return nil
	}
}
