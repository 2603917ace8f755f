// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"hash/fnv"
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// detachBatch puts off Unreports without a waiter, so that a node's share a status write: each node has a
// turn once in an interval. A volume is planned again at that turn, or when it changes; urgent steps are
// done at once. Safe for parallel use.
type detachBatch struct {
	interval time.Duration

	mu      sync.Mutex
	putOffs map[ledger.VolumeID]putOff
}

type putOff struct {
	node  ledger.NodeName
	until time.Time
}

func newDetachBatch(interval time.Duration) *detachBatch {
	return &detachBatch{interval: interval, putOffs: map[ledger.VolumeID]putOff{}}
}

// due returns the steps, or none and the time for which they are put off.
func (g *detachBatch) due(id ledger.VolumeID, planned []rules.Step, now time.Time) ([]rules.Step, time.Duration) {
	if g.interval <= 0 {
		return planned, 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(planned) != 1 || planned[0].Kind != rules.Unreport || planned[0].Urgent {
		delete(g.putOffs, id)
		return planned, 0
	}
	p, known := g.putOffs[id]
	if !known || p.node != planned[0].Node {
		p = putOff{planned[0].Node, g.turn(planned[0].Node, now)}
		g.putOffs[id] = p
	}
	if left := p.until.Sub(now); left > 0 && left <= g.interval { // more: the clock was set back
		return nil, left
	}
	return planned, 0
}

// turn is a node's next turn. Different nodes have different times.
func (g *detachBatch) turn(node ledger.NodeName, now time.Time) time.Time {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(node)) // it never fails
	shift := time.Duration(hash.Sum32()) % g.interval
	return now.Add(-shift).Truncate(g.interval).Add(g.interval + shift)
}
