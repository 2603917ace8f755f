// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// batcher collects a node's items during a request for the next request. Otherwise a request starts after
// rest: items of one cause come within that.
type batcher[T waiter] struct {
	rest time.Duration

	mu      sync.Mutex
	pending map[ledger.NodeName][]T
	busy    map[ledger.NodeName]bool
	// latest is the last item's context: a request must outlive items that are gone.
	latest map[ledger.NodeName]context.Context
}

type waiter interface {
	comparable
	result() chan error
}

// add waits until a request that began after add has settled the item, or ctx is done before a request has
// begun: a stopping caller still gets a running request's outcome. send makes the request in bounded time,
// and settles every item.
func (b *batcher[T]) add(ctx context.Context, node ledger.NodeName, item T, send func(context.Context, ledger.NodeName, []T)) error {
	b.mu.Lock()
	if b.pending == nil {
		b.pending, b.busy = map[ledger.NodeName][]T{}, map[ledger.NodeName]bool{}
		b.latest = map[ledger.NodeName]context.Context{}
	}
	b.latest[node] = ctx
	b.pending[node] = append(b.pending[node], item)
	if !b.busy[node] {
		b.busy[node] = true
		go b.drain(node, send)
	}
	b.mu.Unlock()
	select {
	case err := <-item.result():
		return err
	case <-ctx.Done():
	}
	if b.withdraw(node, item) {
		return context.Cause(ctx)
	}
	return <-item.result()
}

func (b *batcher[T]) withdraw(node ledger.NodeName, item T) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.pending[node], item)
	if i < 0 {
		return false
	}
	b.pending[node] = slices.Delete(b.pending[node], i, i+1)
	return true
}

func (b *batcher[T]) drain(node ledger.NodeName, send func(context.Context, ledger.NodeName, []T)) {
	time.Sleep(b.rest)
	for {
		b.mu.Lock()
		batch := b.pending[node]
		delete(b.pending, node)
		if len(batch) == 0 {
			delete(b.busy, node)
			delete(b.latest, node)
			b.mu.Unlock()
			return
		}
		ctx := b.latest[node]
		b.mu.Unlock()
		send(ctx, node, batch)
	}
}
