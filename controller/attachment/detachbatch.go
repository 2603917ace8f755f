// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"hash/fnv"
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// detachBatch puts off Unreports without a waiter, so that a node's are made in one write of its status:
// each node has its turn once in an interval. Nothing is decided meanwhile: a volume is planned again
// at its node's turn, and earlier if anything about it changes; steps that have become urgent are done
// at once. Safe for parallel use.
type detachBatch struct {
	interval time.Duration

	mu      sync.Mutex
	putOffs map[ledger.VolumeID]putOff
}

// putOff is until when a volume's Unreport at a node is put off.
type putOff struct {
	node  ledger.NodeName
	until time.Time
}

func newDetachBatch(interval time.Duration) *detachBatch {
	return &detachBatch{interval: interval, putOffs: map[ledger.VolumeID]putOff{}}
}

// due returns the steps planned for a volume, or, where they are put off, none of them and for how long.
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

// turn is a node's next turn. Nodes take theirs at different times.
func (g *detachBatch) turn(node ledger.NodeName, now time.Time) time.Time {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(node)) // it never fails
	shift := time.Duration(hash.Sum32()) % g.interval
	return now.Add(-shift).Truncate(g.interval).Add(g.interval + shift)
}
