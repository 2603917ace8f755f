// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"math/rand/v2"
	"time"

	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/protocol"
)

// Spread spreads a pause over its last quarter.
func Spread(pause time.Duration) time.Duration {
	return pause - time.Duration(rand.Int64N(int64(pause)/4+1))
}

// Log logs a failed attempt at a key, and the next pause.
func Log(ctx context.Context, queue string, key any, err error, pause time.Duration) {
	logger := klog.FromContext(ctx)
	if protocol.AttemptEnd(err) == protocol.Stale {
		logger.V(2).Info("Decided on old facts; deciding anew", "queue", queue, "key", key, "why", err.Error())
		return
	}
	logger.Error(err, "Failed; trying again", "queue", queue, "key", key, "after", pause)
}
