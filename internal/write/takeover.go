// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/protocol"
)

const takeOverPause = 500 * time.Millisecond

// TakeOver begins a term of leadership: see protocol.Memory.TakeOver. Decide nothing before it returns. It
// retries until ctx is done; its error is ctx's cause. Call it once, before Do and Carry.
func (e *Executor) TakeOver(ctx context.Context) error {
	for tasks := e.takeOver(); len(tasks) > 0; tasks = e.takeOver() {
		if err := e.all(ctx, tasks); err != nil {
			klog.FromContext(ctx).Error(err, "This leader can't begin; it tries again")
			if err := pause(ctx, takeOverPause); err != nil {
				return fmt.Errorf("take over: %w", err)
			}
		}
	}
	return nil
}

func (e *Executor) takeOver() []protocol.Task {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.memory.TakeOver(e.snapshot())
}

func (e *Executor) all(ctx context.Context, tasks []protocol.Task) error {
	var group sync.WaitGroup
	errs := make([]error, len(tasks))
	for i, task := range tasks {
		group.Go(func() { errs[i] = e.run(ctx, running{Task: task}) })
	}
	group.Wait()
	return errors.Join(errs...)
}
