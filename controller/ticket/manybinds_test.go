// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/bind"
	"github.com/moorage-dev/moorage/internal/execute"
	"github.com/moorage-dev/moorage/internal/flow"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// stuck is a writer that waits for its turn at the API server.
type stuck struct {
	*writer
	waiting atomic.Int64
	goOn    chan struct{}
}

func (s *stuck) Carry(ctx context.Context, task flow.Task, status execute.Status) error {
	s.waiting.Add(1)
	<-s.goOn
	return s.writer.Carry(ctx, task, status)
}

// However many binds one namespace asks for, few of them stand in the row for a request at once: everybody
// else's grants, attaches and detaches stand behind them there.
func TestBindsOfOneNamespaceLeaveRoom(t *testing.T) {
	const pods, most = 2000, 256
	volume := ledger.VolumeID{Driver: driver, Handle: "many"}
	events := []ledger.Event{
		ledger.PersistentVolume{Name: "many", Version: "1", Volume: volume, Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "s", Name: "many"}},
		ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: "many"}, UID: "many", Version: "1", PersistentVolume: "many", Bound: true, Access: ledger.AccessMany},
	}
	for i := range pods {
		events = append(events, pod(fmt.Sprint("p", i), "", "many"))
	}
	synctest.Test(t, func(t *testing.T) {
		w := &stuck{writer: &writer{ledger: facts(events...)}, goOn: make(chan struct{})}
		c, err := New(Config{Cache: w, Write: w, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		c.tookOver.Store(true)
		results := make(chan error, pods)
		for i := range pods {
			go func() {
				results <- c.Bind(t.Context(), bind.Request{Pod: types.UID(fmt.Sprint("uid-p", i)), Version: "1", Node: "n1"})
			}()
		}
		synctest.Wait()
		if n := w.waiting.Load(); n > most {
			t.Errorf("%d binds of one namespace stand in the row for a request at once; want %d at most", n, most)
		} else if n == 0 {
			t.Error("none is bound: this test is about nothing")
		}
		close(w.goOn)
		for range pods {
			if err := <-results; err != nil && !errors.Is(err, errBusy) {
				t.Errorf("who finds no room has %v", err)
			}
		}
		defer func() { // its queues' goroutines end with it
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			c.Run(ctx, 1, 1)
		}()
		if err := c.Bind(t.Context(), bind.Request{Pod: "uid-p1999", Version: "1", Node: "n1"}); errors.Is(err, errBusy) {
			t.Error("there is no room again once they are over")
		}
	})
}
