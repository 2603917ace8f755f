// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/test/bench/scale/result"
)

// bystanderEvery is the pace of the bystanders: part of the load, as a load generator's is.
const bystanderEvery = 500 * time.Millisecond

// bystanderVolumes is how many volumes bystanders have, each used once; when they run out, no more
// bystanders come.
const bystanderVolumes = 1000

func bystanderName(i int) string { return fmt.Sprintf("%s%04d", bystanderPrefix, i) }

// bystanders are pods with a volume each that come one after the other, and go once they run.
type bystanders struct {
	maker *maker

	mu      sync.Mutex
	next    int
	created map[string]time.Time
	ran     map[string]time.Duration
}

func newBystanders(m *maker) *bystanders {
	return &bystanders{maker: m, created: map[string]time.Time{}, ran: map[string]time.Duration{}}
}

// take is the next bystander's name; false: there is no volume left.
func (b *bystanders) take() (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next >= bystanderVolumes {
		return "", false
	}
	b.next++
	return bystanderName(b.next - 1), true
}

// begin makes bystanders until the returned function is called, which waits, for as long as
// patience, until those run that came, and returns how long each took.
func (b *bystanders) begin(ctx context.Context) (end func(patience time.Duration) (result.Bystanders, error)) {
	life, stop := context.WithCancel(ctx)
	b.mu.Lock()
	first := b.next
	b.mu.Unlock()
	done := make(chan error, 1)
	go func() { done <- b.come(life) }()
	return func(patience time.Duration) (result.Bystanders, error) {
		stop()
		if err := <-done; err != nil {
			return result.Bystanders{}, err
		}
		b.mu.Lock()
		last := b.next
		b.mu.Unlock()
		return b.wait(ctx, patience, first, last)
	}
}

// come makes one bystander after the other until ctx ends.
func (b *bystanders) come(ctx context.Context) error {
	pace := time.NewTicker(bystanderEvery)
	defer pace.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-pace.C:
		}
		name, ok := b.take()
		if !ok {
			return nil
		}
		b.mu.Lock()
		b.created[name] = time.Now()
		b.mu.Unlock()
		// What has begun is finished, so that each that is counted exists.
		if err := b.maker.pod(context.WithoutCancel(ctx), bystanderNamespace, name, "", map[string]string{bystanderLabel: "true"}, []string{name}); err != nil {
			return err
		}
	}
}

// see takes in that a bystander runs: it has done its part, and goes.
func (b *bystanders) see(ctx context.Context, name string, now time.Time) {
	b.mu.Lock()
	created, ok := b.created[name]
	_, again := b.ran[name]
	if ok && !again {
		b.ran[name] = now.Sub(created)
	}
	b.mu.Unlock()
	if ok && !again {
		go func() { _ = b.maker.kube.CoreV1().Pods(bystanderNamespace).Delete(ctx, name, metav1.DeleteOptions{}) }()
	}
}

// wait returns how long bystanders took, once all of them run.
func (b *bystanders) wait(ctx context.Context, patience time.Duration, first, last int) (result.Bystanders, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		out := result.Bystanders{}
		b.mu.Lock()
		for i := first; i < last; i++ {
			if took, ok := b.ran[bystanderName(i)]; ok {
				out.Running = append(out.Running, took.Seconds())
			}
		}
		b.mu.Unlock()
		if len(out.Running) == last-first {
			return out, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return out, fmt.Errorf("%d of %d bystanders run: %w", len(out.Running), last-first, context.Cause(ctx))
		}
	}
}
