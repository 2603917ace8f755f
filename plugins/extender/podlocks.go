// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"sync"
)

// podLocks admits one caller at a time for each pod. Safe for parallel use.
type podLocks struct {
	mu  sync.Mutex
	all map[string]*podLock // by pod UID
}

// The holder has put an element into held.
type podLock struct {
	held   chan struct{} // of capacity 1
	wanted int           // with the holder
}

func newPodLocks() *podLocks { return &podLocks{all: map[string]*podLock{}} }

// Call over at the end. The error is the cause of ctx's end.
func (t *podLocks) lock(ctx context.Context, uid string) (over func(), err error) {
	t.mu.Lock()
	own := t.all[uid]
	if own == nil {
		own = &podLock{held: make(chan struct{}, 1)}
		t.all[uid] = own
	}
	own.wanted++
	t.mu.Unlock()
	select {
	case own.held <- struct{}{}:
		return func() {
			<-own.held
			t.unlock(uid, own)
		}, nil
	case <-ctx.Done():
		t.unlock(uid, own)
		return nil, context.Cause(ctx)
	}
}

func (t *podLocks) unlock(uid string, own *podLock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.wanted--; own.wanted == 0 {
		delete(t.all, uid)
	}
}
