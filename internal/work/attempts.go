// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/execute"
)

// backoff bounds the pauses between attempts that fail. A change of the facts
// cuts a pause short.
type backoff struct{ first, longest time.Duration }

// failures is the backoff after an error.
var failures = backoff{200 * time.Millisecond, time.Minute}

// stale is the backoff when facts changed under a decision: the next attempt
// is expected to succeed.
var stale = backoff{2 * time.Millisecond, 5 * time.Second}

// pause doubles with each attempt, and is spread over its last quarter, so
// that what failed together is not tried together.
func (b backoff) pause(attempts int) time.Duration {
	pause := b.longest
	if attempts < 30 {
		pause = min(b.first<<attempts, b.longest)
	}
	return pause - time.Duration(rand.Int64N(int64(pause)/4+1))
}

// Attempts counts the attempts at one thing that have failed since the last one
// that did not. The zero value counts none. Its methods are serial.
type Attempts struct{ failed, stale int }

// Fail counts another attempt, which ended with err, and returns for how long to
// pause before the next one. What is stale does not count as failed.
func (a *Attempts) Fail(err error) time.Duration {
	if errors.Is(err, execute.ErrStale) {
		a.stale++
		return stale.pause(a.stale - 1)
	}
	a.failed++
	return failures.pause(a.failed - 1)
}

// Log says in the log that an attempt at a key of a queue failed, and after how
// long the next one is made.
func Log(ctx context.Context, queue string, key any, err error, pause time.Duration) {
	logger := klog.FromContext(ctx)
	if errors.Is(err, execute.ErrStale) {
		logger.V(2).Info("Decided on old facts; deciding anew", "queue", queue, "key", key, "why", err.Error())
		return
	}
	logger.Error(err, "Failed; trying again", "queue", queue, "key", key, "after", pause)
}
