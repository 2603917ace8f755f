// SPDX-License-Identifier: Apache-2.0

package write

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

// HoldWriters returns when n writes of a volume's hold are under way or wait.
func (e *Executor) HoldWriters(t *testing.T, v ledger.VolumeID, n int) {
	t.Helper()
	eventually(t, func() int {
		e.holds.mu.Lock()
		defer e.holds.mu.Unlock()
		if own := e.holds.all[v]; own != nil {
			return own.wanted
		}
		return 0
	}, n)
}

func waitFor[T waiter](t *testing.T, b *batcher[T], node ledger.NodeName, n int) {
	t.Helper()
	eventually(t, func() int {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.pending[node])
	}, n)
}

func eventually(t *testing.T, waiting func() int, n int) {
	t.Helper()
	for late := time.Now().Add(30 * time.Second); time.Now().Before(late); time.Sleep(time.Millisecond) {
		if waiting() == n {
			return
		}
	}
	t.Fatalf("never: %d wait", n)
}
