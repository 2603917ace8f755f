// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Waiting returns when n changes of a node wait for its next patch.
func (e *Executor) Waiting(t *testing.T, node ledger.NodeName, n int) {
	t.Helper()
	waitFor(t, &e.nodes, node, n)
}

// Asking returns when n questions wait for a node's next list of pods.
func (e *Executor) Asking(t *testing.T, node ledger.NodeName, n int) {
	t.Helper()
	waitFor(t, &e.lists, node, n)
}

func waitFor[T waiter](t *testing.T, b *batcher[T], node ledger.NodeName, n int) {
	t.Helper()
	late := time.Now().Add(30 * time.Second)
	for time.Now().Before(late) {
		b.mu.Lock()
		waiting := len(b.pending[node])
		b.mu.Unlock()
		if waiting == n {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("never: %d wait at node %s", n, node)
}
