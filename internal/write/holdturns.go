// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"fmt"
	"sync"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
)

// holdTurns serializes the writes of each VolumeHold. Safe for parallel use.
type holdTurns struct {
	mu  sync.Mutex
	all map[ledger.VolumeID]*holdTurn
}

// The writer has put an element into taken.
type holdTurn struct {
	taken  chan struct{} // of capacity 1
	wanted int           // with the current writer
}

// take waits for another write of the hold. Call over after this write. Its error is ctx's cause.
func (t *holdTurns) take(ctx context.Context, v ledger.VolumeID) (over func(), err error) {
	t.mu.Lock()
	if t.all == nil {
		t.all = map[ledger.VolumeID]*holdTurn{}
	}
	own := t.all[v]
	if own == nil {
		own = &holdTurn{taken: make(chan struct{}, 1)}
		t.all[v] = own
	}
	own.wanted++
	t.mu.Unlock()
	select {
	case own.taken <- struct{}{}:
		return func() {
			<-own.taken
			t.leave(v, own)
		}, nil
	case <-ctx.Done():
		t.leave(v, own)
		return nil, context.Cause(ctx)
	}
}

func (t *holdTurns) leave(v ledger.VolumeID, own *holdTurn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.wanted--; own.wanted == 0 {
		delete(t.all, v)
	}
}

// If the hold has another version than the decision's, nothing is sent: the API server would refuse the
// write.
func (e *Executor) putHold(ctx context.Context, r protocol.Request) (protocol.Answer, error) {
	over, err := e.holds.take(ctx, r.Volume)
	if err != nil {
		err = fmt.Errorf("%w: another write of VolumeHold %s is under way: %w", errNotSent, r.Key, err)
		return answerOf(r, err), err
	}
	defer over()
	version := ""
	if v := e.snapshot().Volume(r.Volume); v != nil && v.Hold != nil {
		version = v.Hold.Version
	}
	if version != r.Version {
		return protocol.Answer{Result: protocol.Unfit}, nil
	}
	return e.writeHold(ctx, r)
}
