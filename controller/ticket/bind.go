// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/moorage-dev/moorage/internal/bind"
	"github.com/moorage-dev/moorage/internal/execute"
	"github.com/moorage-dev/moorage/internal/flow"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// binder carries out requests to bind pods.
type binder struct {
	mu       sync.Mutex
	over     bool // the term is: nothing is bound any more
	underWay sync.WaitGroup
	patience time.Duration // how long it waits for a pod that it has not seen
}

// end has no more binds begin, and returns when those under way are answered.
func (b *binder) end() {
	b.mu.Lock()
	b.over = true
	b.mu.Unlock()
	b.underWay.Wait()
}

var _ bind.Binder = &Controller{}

// Why a pod is given a ticket, beside what the API server says.
var (
	errNotLeading = fmt.Errorf("%w: this controller does not lead yet, or any more", bind.ErrUseTicket)
	errBehind     = fmt.Errorf("%w: this controller has not seen the pod or its claims", bind.ErrUseTicket)
	errNotServed  = fmt.Errorf("%w: it is not for a scheduler that this controller binds for", bind.ErrUseTicket)
	errContended  = fmt.Errorf("%w: somebody contends for what it needs", bind.ErrUseTicket)
)

// Whoever asks has seen the pod and its claims, which this process may see a moment later: it
// looks again for so long, every so often.
const (
	behindPatience = 300 * time.Millisecond
	behindPause    = 5 * time.Millisecond
)

// Bind binds a pod whose volumes nobody else contends for: see bind.Binder.
func (c *Controller) Bind(ctx context.Context, r bind.Request) error {
	var reservation ledger.Ticket
	err := errBehind
	// Its own error says that the time is over: then the last answer stands.
	_ = wait.PollUntilContextTimeout(ctx, behindPause, c.binder.patience, true, func(context.Context) (bool, error) {
		reservation, err = c.reserve(r)
		return !errors.Is(err, errBehind), nil
	})
	if err == nil {
		defer c.binder.underWay.Done()
		err = c.carry(ctx, &reservation, r.Version)
	}
	c.config.Metrics.Bind(resultOf(err))
	return err
}

// carry sends a bind whose reservation counts.
func (c *Controller) carry(ctx context.Context, reservation *ledger.Ticket, version string) error {
	err := c.config.Write.Carry(ctx, flow.Bind(reservation, version), nil)
	s := c.config.Cache.Snapshot()
	pod := s.Pod(reservation.Pod)
	switch {
	case err == nil, pod != nil && pod.Node == reservation.Node:
		return nil
	case errors.Is(err, execute.ErrStale), s.Ticket(reservation.ID) == nil:
		return errors.Join(bind.ErrUseTicket, err)
	}
	return err
}

// reserve takes a pod's reservation into the ledger, if it may be bound at once. The bind
// counts as under way then.
func (c *Controller) reserve(r bind.Request) (ledger.Ticket, error) {
	c.binder.mu.Lock()
	defer c.binder.mu.Unlock()
	if c.binder.over || !c.tookOver.Load() {
		return ledger.Ticket{}, errNotLeading
	}
	c.deciding.mu.Lock()
	defer c.deciding.mu.Unlock()
	s := c.config.Cache.Snapshot()
	pod := s.Pod(string(r.Pod))
	switch {
	case pod == nil || claimsUnseen(s, pod):
		return ledger.Ticket{}, errBehind
	case c.config.Serves != nil && !c.config.Serves(pod):
		return ledger.Ticket{}, errNotServed
	}
	reservation, can := c.config.Arbiter.BindAtOnce(s, pod, ledger.NodeName(r.Node), c.config.Now())
	if !can {
		return reservation, errContended
	}
	c.binder.underWay.Add(1)
	c.config.Cache.Apply(reservation)
	c.deciding.add(counts{reservation.Node, c.config.Cache.Snapshot().TicketAt(reservation.ID)})
	return reservation, nil
}

// claimsUnseen says whether it is not known yet where a claim of a pod leads, or that there
// is such a claim.
func claimsUnseen(s ledger.Snapshot, pod *ledger.Pod) bool {
	return slices.ContainsFunc(pod.Volumes, func(v ledger.PodVolume) bool {
		_, link := s.ResolvePod(pod, v)
		return link == ledger.LinkMissing || link == ledger.LinkUnseen || link == ledger.LinkUnbound
	})
}

// resultOf is what came of a request, as a metric's label.
func resultOf(err error) string {
	for _, known := range []struct {
		err   error
		label string
	}{
		{nil, "bound"}, {errNotLeading, "NotLeading"}, {errBehind, "Behind"}, {errNotServed, "NotServed"}, {errContended, "Contended"},
		{bind.ErrUseTicket, "Changed"},
	} {
		if errors.Is(err, known.err) {
			return known.label
		}
	}
	return "unknown"
}
