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

const bystanderEvery = 500 * time.Millisecond

// Each volume is used once; then no more bystanders come.
const bystanderVolumes = 1000

func bystanderName(i int) string { return fmt.Sprintf("%s%04d", bystanderPrefix, i) }

type bystanders struct {
	maker *maker

	mu   sync.Mutex
	next int
	life map[string]*life
}

type life struct{ created, bound, attached, ran time.Time }

func newBystanders(m *maker) *bystanders {
	return &bystanders{maker: m, life: map[string]*life{}}
}

// It returns false if no volume is left.
func (b *bystanders) take() (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next >= bystanderVolumes {
		return "", false
	}
	b.next++
	return bystanderName(b.next - 1), true
}

// The returned function ends it, waits at most patience for present bystanders, and returns their times.
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
		b.life[name] = &life{created: time.Now()}
		b.mu.Unlock()
		// The last one is finished: each counted bystander exists.
		if err := b.maker.pod(context.WithoutCancel(ctx), bystanderNamespace, name, "", map[string]string{bystanderLabel: "true"}, []string{name}); err != nil {
			return err
		}
	}
}

func (b *bystanders) first(name string, moment func(*life) *time.Time, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	known, ok := b.life[name]
	if !ok || !moment(known).IsZero() {
		return false
	}
	*moment(known) = now
	return true
}

func (b *bystanders) bound(name string, now time.Time) {
	b.first(name, func(l *life) *time.Time { return &l.bound }, now)
}

func (b *bystanders) attached(name string, now time.Time) {
	b.first(name, func(l *life) *time.Time { return &l.attached }, now)
}

func (b *bystanders) runs(ctx context.Context, name string, now time.Time) {
	if b.first(name, func(l *life) *time.Time { return &l.ran }, now) {
		go func() { _ = b.maker.kube.CoreV1().Pods(bystanderNamespace).Delete(ctx, name, metav1.DeleteOptions{}) }()
	}
}

func (b *bystanders) wait(ctx context.Context, patience time.Duration, first, last int) (result.Bystanders, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		out := result.Bystanders{}
		b.mu.Lock()
		for i := first; i < last; i++ {
			if l := b.life[bystanderName(i)]; !l.ran.IsZero() {
				out.Bound = append(out.Bound, l.bound.Sub(l.created).Seconds())
				out.Attached = append(out.Attached, l.attached.Sub(l.created).Seconds())
				out.Running = append(out.Running, l.ran.Sub(l.created).Seconds())
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
