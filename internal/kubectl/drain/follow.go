// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// lookEvery is how often the cluster is looked at; in one so large that a look takes long, half
// of the time at most.
const lookEvery = time.Second

// loop is a drain that goes on.
type loop struct {
	*drainer
	c       *cluster.Cluster
	m       *moves
	world   *facts.World // as it was seen last; nil before
	fresh   func(context.Context) (*facts.World, error)
	answers chan answer
	ended   chan error
	worlds  chan *facts.World
}

// follow follows the cluster until the node is empty, and evicts what may go.
func (d *drainer) follow(ctx context.Context, c *cluster.Cluster, m *moves) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	l := &loop{drainer: d, c: c, m: m, fresh: c.Read, answers: make(chan answer), ended: make(chan error, 1), worlds: make(chan *facts.World)}
	go func() {
		l.ended <- c.Follow(ctx, func(w *facts.World) error {
			select {
			case l.worlds <- w:
			case <-ctx.Done():
			}
			return nil
		})
	}()
	var late <-chan time.Time
	if d.timeout > 0 {
		late = time.After(d.timeout)
	}
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case err := <-l.ended:
			if err == nil && ctx.Err() != nil {
				err = m.brokenOff()
			}
			return err
		case <-late:
			return &command.ExitError{Code: command.ExitFindings, Message: d.base.Style().Wrap(fmt.Sprintf("timed out after %s. %s", d.timeout, m.remaining()), len("error: "))}
		case l.world = <-l.worlds:
		case a := <-l.answers:
			m.answered(a, c.Clock())
		case <-pause.C:
			began := time.Now()
			if over, err := l.pass(ctx); over {
				return err
			}
			pause.Reset(max(lookEvery, time.Since(began)))
		}
	}
}

// pass looks at the cluster once and does what is to be done. What would end the drain is
// looked at again by fresh lists: what is followed lags.
func (l *loop) pass(ctx context.Context) (over bool, err error) {
	if l.world == nil {
		return false, nil
	}
	now := l.c.Clock()
	due := l.m.next(l.world, now)
	if over, _ := l.m.end(); over {
		fresh, err := l.fresh(ctx)
		if err != nil {
			return ctx.Err() != nil, err // in the next pass again
		}
		due = l.m.next(fresh, now)
		if over, err := l.m.end(); over {
			if err == nil {
				l.say("%s", l.m.summary())
			}
			return true, err
		}
	}
	l.m.tellWhatIsOpen()
	for _, one := range due {
		one.asking, one.asked = true, now
		pod := one.pod
		go func() {
			a := l.evictPod(ctx, l.c, pod)
			a.of = one
			select {
			case l.answers <- a:
			case <-ctx.Done():
			}
		}()
	}
	return false, nil
}
