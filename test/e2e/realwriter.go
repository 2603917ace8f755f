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

// writer is a client of a database, outside of all nodes: it writes numbered records, one after the
// other, and keeps which were acknowledged. Its methods are safe for parallel use.
type writer struct {
	*story
	database
	end  context.CancelFunc
	done chan struct{}
	// pace is the time between two records.
	pace time.Duration
	// patience is how long the database may take to answer at the end.
	patience time.Duration
	// first is a second client, of the pod that was there first; nil for none.
	first *writer
	// mayLose says that the database may be lost by what was done to it.
	mayLose bool

	mu    sync.Mutex
	acked int               // the last record
	by    map[types.UID]int // acknowledgements, by pod
	at    time.Time         // of the last one
	gap   time.Duration     // the longest between two, since begin
}

// writer makes a StatefulSet of a database, and a client that begins to write.
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

// write writes to the newest pod that is ready, until it ends or another one is newer.
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

// writeTo writes to a pod until it ends.
func (c *writer) writeTo(ctx context.Context, pod *corev1.Pod) {
	script := fmt.Sprintf(`n=%d; while %s; do echo $n; n=$((n+1)); sleep %.3f; done`, c.last()+1, c.put, c.pace.Seconds())
	_ = c.ExecInto(ctx, &lines{each: func(line string) { c.acknowledged(pod.UID, line) }}, pod.Name, "sh", "-c", script) // it ends by what is done to the pod
}

// ofFirst is the number before the records of a client that stays with the first pod.
const ofFirst = 1_000_000

// staysWith has a second client write to a pod, also while a newer one answers.
func (c *writer) staysWith(pod *corev1.Pod) {
	ctx, end := context.WithCancel(c.ctx)
	first := &writer{story: c.story, database: c.database, end: end, done: make(chan struct{}), pace: c.pace, acked: ofFirst, by: map[types.UID]int{}}
	c.first = first
	go func() {
		defer close(first.done)
		first.writeTo(ctx, pod)
	}()
}

// newest is the youngest pod that is ready; nil if there is none.
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

// begin forgets the longest pause so far.
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

// acknowledges waits until a pod has acknowledged ten records.
func (c *writer) acknowledges(pod types.UID) { c.acknowledgesMore(pod, 10) }

// acknowledgesMore waits until a pod has acknowledged so many records.
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

// stop ends the client, and that of the first pod.
func (c *writer) stop() {
	c.end()
	<-c.done
	if c.first != nil {
		c.first.stop()
	}
}

// lines is a writer that hands over each line that is written whole.
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
