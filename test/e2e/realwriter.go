// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// writer is a client outside of all nodes. Its methods are safe for parallel use.
type writer struct {
	*story
	database
	end      context.CancelFunc
	done     chan struct{}
	pace     time.Duration
	patience time.Duration
	first    *writer
	mayLose  bool

	mu    sync.Mutex
	acked int               // the last record
	by    map[types.UID]int // acknowledgements, by pod
	at    time.Time         // of the last one
	gap   time.Duration     // the longest between two, since begin
}

func (s *story) writer(d database) *writer {
	s.statefulSetOf(d)
	ctx, end := context.WithCancel(s.ctx)
	c := &writer{story: s, database: d, end: end, done: make(chan struct{}), pace: 50 * time.Millisecond, patience: 2 * time.Minute, by: map[types.UID]int{}}
	pod := s.successor("the database answers", d.name, s.isReady)
	s.run(pod.Name, d.create)
	go func() {
		defer close(c.done)
		again := time.NewTicker(100 * time.Millisecond)
		defer again.Stop()
		for ctx.Err() == nil {
			c.write(ctx)
			select {
			case <-ctx.Done():
			case <-again.C:
			}
		}
	}()
	return c
}

func (c *writer) write(ctx context.Context) {
	pod := c.newest()
	if pod == nil {
		return
	}
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				if newest := c.newest(); newest != nil && newest.UID != pod.UID {
					end()
				}
			}
		}
	}()
	c.writeTo(ctx, pod)
}

func (c *writer) writeTo(ctx context.Context, pod *corev1.Pod) {
	script := fmt.Sprintf(`n=%d; while %s; do echo $n; n=$((n+1)); sleep %.3f; done`, c.last()+1, c.put, c.pace.Seconds())
	_ = c.ExecInto(ctx, &lines{each: func(line string) { c.acknowledged(pod.UID, line) }}, pod.Name, "sh", "-c", script) // it ends by what is done to the pod
}

const ofFirst = 1_000_000

func (c *writer) staysWith(pod *corev1.Pod) {
	ctx, end := context.WithCancel(c.ctx)
	first := &writer{story: c.story, database: c.database, end: end, done: make(chan struct{}), pace: c.pace, acked: ofFirst, by: map[types.UID]int{}}
	c.first = first
	go func() {
		defer close(first.done)
		first.writeTo(ctx, pod)
	}()
}

func (c *writer) newest() *corev1.Pod {
	pods := slices.DeleteFunc(c.PodsOf(sandbox.AppLabel, c.name), func(pod *corev1.Pod) bool { return c.isReady(pod) != nil })
	if len(pods) == 0 {
		return nil
	}
	return pods[len(pods)-1]
}

func (c *writer) acknowledged(by types.UID, line string) {
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !c.at.IsZero() {
		c.gap = max(c.gap, now.Sub(c.at))
	}
	c.acked, c.at = max(c.acked, n), now
	c.by[by]++
}

func (c *writer) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gap = 0
}

func (c *writer) longest() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gap
}

func (c *writer) last() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acked
}

func (c *writer) acknowledges(pod types.UID) { c.acknowledgesMore(pod, 10) }

func (c *writer) acknowledgesMore(pod types.UID, records int) {
	c.must(c.EventuallyWithin(c.ctx, 2*time.Minute, "the database acknowledges records", func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.by[pod] < records {
			return fmt.Errorf("%d so far", c.by[pod])
		}
		return nil
	}))
}

func (c *writer) stop() {
	c.end()
	<-c.done
	if c.first != nil {
		c.first.stop()
	}
}

type lines struct {
	each func(line string)
	rest bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest.Write(p)
	for {
		line, rest, whole := bytes.Cut(l.rest.Bytes(), []byte("\n"))
		if !whole {
			return len(p), nil
		}
		l.each(string(line))
		l.rest = *bytes.NewBuffer(slices.Clone(rest))
	}
}
