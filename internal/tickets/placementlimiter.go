// SPDX-License-Identifier: Apache-2.0

package tickets

import (
	"sync"

	"k8s.io/client-go/util/flowcontrol"

	"github.com/moorage-dev/moorage/internal/rules"
)

// placingsPerSecond limits a namespace, after as many as a Queue decides on. Each may check all nodes,
// repeatedly if none fits, and a tenant may make any number of tickets.
const placingsPerSecond = 20

// Safe for parallel use.
type placementLimiter struct {
	mu sync.Mutex
	of map[string]flowcontrol.RateLimiter // by namespace
}

func (p *placementLimiter) may(namespace string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	limiter := p.of[namespace]
	if limiter == nil {
		limiter = flowcontrol.NewTokenBucketRateLimiter(placingsPerSecond, rules.MaxWaiting)
		if p.of == nil || len(p.of) >= maxNamespaces {
			p.of = map[string]flowcontrol.RateLimiter{} // all begin anew
		}
		p.of[namespace] = limiter
	}
	return limiter.TryAccept()
}

const maxNamespaces = 10_000
