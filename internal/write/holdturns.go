// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"fmt"
	"sync"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
)

// holdTurns has the writes of each volume's VolumeHold follow one another: grants and the plans
// of volumes both write it. Safe for parallel use.
type holdTurns struct {
	mu  sync.Mutex
	all map[ledger.VolumeID]*holdTurn
}

// holdTurn is one volume's: the caller that has put an element into taken writes.
type holdTurn struct {
	taken  chan struct{} // of capacity 1
	wanted int           // writers that write or wait
}

// take waits until no other write of a volume's hold is under way. over must be called at the end of
// this write. Its error is the cause of ctx's end.
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

// putHold writes a hold in its turn. If the hold has another version than the decision's, the API
// server would refuse the write: nothing is sent.
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
