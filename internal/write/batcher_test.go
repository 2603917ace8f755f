// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

type entry struct {
	done  chan error
	began time.Time
}

func (e *entry) result() chan error { return e.done }

// The window is the request under way: a lone change is sent at once, later changes share the next request.
func TestWindow(t *testing.T) {
	const answer = 10 * time.Millisecond // of the API server
	synctest.Test(t, func(t *testing.T) {
		var b batcher[*entry]
		var mu sync.Mutex
		var sent []int
		var longest time.Duration
		send := func(_ context.Context, _ ledger.NodeName, batch []*entry) {
			mu.Lock()
			sent = append(sent, len(batch))
			mu.Unlock()
			now := time.Now()
			time.Sleep(answer)
			for _, e := range batch {
				e.began = now
				e.done <- nil
			}
		}
		add := func(node ledger.NodeName) (waited time.Duration) {
			e, came := &entry{done: make(chan error, 1)}, time.Now()
			if err := b.add(t.Context(), node, e, send); err != nil {
				t.Error(err)
			}
			return e.began.Sub(came)
		}

		if waited := add("n1"); waited != 0 {
			t.Errorf("a lone change waited %s", waited)
		}
		time.Sleep(time.Hour)
		sent = nil

		var adding sync.WaitGroup
		for range 300 {
			adding.Go(func() {
				waited := add("n1")
				mu.Lock()
				defer mu.Unlock()
				longest = max(longest, waited)
			})
			synctest.Wait()
			time.Sleep(answer / 100)
		}
		adding.Wait()
		if len(sent) != 4 || sent[0] != 1 {
			t.Errorf("300 changes in requests of %v, want one, and then all that came within each", sent)
		}
		if longest > answer {
			t.Errorf("a change waited %s for its request, which is longer than a request takes", longest)
		}

		adding.Go(func() { add("n1") })
		synctest.Wait()
		if waited := add("n2"); waited != 0 {
			t.Errorf("a change of another node waited %s", waited)
		}
		adding.Wait()
		synctest.Wait()
		if len(b.pending)+len(b.busy)+len(b.latest) > 0 {
			t.Errorf("kept: %v, %v, %v", b.pending, b.busy, b.latest)
		}
	})
}

func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := batcher[*entry]{rest: 2 * time.Millisecond}
		var sent []int
		send := func(_ context.Context, _ ledger.NodeName, batch []*entry) {
			sent = append(sent, len(batch))
			for _, e := range batch {
				e.done <- nil
			}
		}
		var adding sync.WaitGroup
		for range 4 {
			adding.Go(func() {
				if err := b.add(t.Context(), "n1", &entry{done: make(chan error, 1)}, send); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
			time.Sleep(time.Millisecond / 2)
		}
		adding.Wait()
		if len(sent) != 1 || sent[0] != 4 {
			t.Errorf("4 changes within the rest are sent in requests of %v, want one", sent)
		}
	})
}

// A stopped caller gets the outcome of a begun request; otherwise none is made for it.
func TestStopDuringTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b batcher[*entry]
		sent := 0
		goOn := make(chan struct{})
		send := func(_ context.Context, _ ledger.NodeName, batch []*entry) {
			sent += len(batch)
			<-goOn
			for _, e := range batch {
				e.done <- nil
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		add := func() chan error {
			result := make(chan error, 1)
			go func() { result <- b.add(ctx, "n1", &entry{done: make(chan error, 1)}, send) }()
			synctest.Wait()
			return result
		}
		underWay, waits := add(), add()
		stop()
		if err := <-waits; !errors.Is(err, context.Canceled) {
			t.Errorf("who waits for the next request hears %v", err)
		}
		close(goOn)
		if err := <-underWay; err != nil {
			t.Errorf("the request that was under way is given up: %v", err)
		}
		synctest.Wait()
		if sent != 1 || len(b.pending)+len(b.busy)+len(b.latest) > 0 {
			t.Errorf("%d changes were sent, and kept are %v, %v, %v", sent, b.pending, b.busy, b.latest)
		}
	})
}
