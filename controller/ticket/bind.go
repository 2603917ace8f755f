// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/bind"
	"github.com/moorage-dev/moorage/internal/flow"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// binder carries out requests to bind pods.
type binder struct {
	mu       sync.Mutex
	over     bool // the term is: nothing is bound any more
	underWay sync.WaitGroup
	sent     map[string]int // binds under way, by namespace
	all      int            // of all namespaces
	patience time.Duration  // how long it waits for a pod that it has not seen
	news     news
}

// Binds stand in one row with all other writes of the controller, and nobody takes turns there: so many are
// under way at once, of one namespace and of all. Who comes beside them has a ticket.
const (
	maxBindsOfNamespace = 128
	maxBinds            = 512
)

// begin counts a bind, if there is room for it; mu is held.
func (b *binder) begin(namespace string) bool {
	if b.sent[namespace] >= maxBindsOfNamespace || b.all >= maxBinds {
		return false
	}
	if b.sent == nil {
		b.sent = map[string]int{}
	}
	b.sent[namespace]++
	b.all++
	b.underWay.Add(1)
	return true
}

// done counts a bind no more.
func (b *binder) done(namespace string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all--
	if b.sent[namespace]--; b.sent[namespace] == 0 {
		delete(b.sent, namespace)
	}
	b.underWay.Done()
}

// news tells who waits for it that a pod has changed.
type news struct {
	mu      sync.Mutex // never held while another is taken: events come with locks held
	waiting map[string]chan struct{}
}

// next is closed when a pod, by its UID, or where one of its claims leads, changes.
func (n *news) next(pod string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting == nil {
		n.waiting = map[string]chan struct{}{}
	}
	if n.waiting[pod] == nil {
		n.waiting[pod] = make(chan struct{})
	}
	return n.waiting[pod]
}

// heard has whoever waits to hear of a pod look again.
func (n *news) heard(pod string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if waits := n.waiting[pod]; waits != nil {
		close(waits)
		delete(n.waiting, pod)
	}
}

// heardAll has everybody who waits look again.
func (n *news) heardAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for pod, waits := range n.waiting {
		close(waits)
		delete(n.waiting, pod)
	}
}

// end has no more binds begin, and returns when those under way are answered.
func (b *binder) end() {
	b.mu.Lock()
	b.over = true
	b.mu.Unlock()
	b.news.heardAll()
	b.underWay.Wait()
}

var _ bind.Binder = &Controller{}

// Why a pod is given a ticket, beside what the API server says.
var (
	errNotLeading = fmt.Errorf("%w: this controller does not lead yet, or any more", bind.ErrUseTicket)
	errBehind     = fmt.Errorf("%w: this controller has not seen the pod or its claims", bind.ErrUseTicket)
	errNotServed  = fmt.Errorf("%w: it is not for a scheduler that this controller binds for", bind.ErrUseTicket)
	errBusy       = fmt.Errorf("%w: many other binds are under way", bind.ErrUseTicket)
	errContended  = fmt.Errorf("%w: somebody contends for what it needs", bind.ErrUseTicket)
)

// Heard says that a pod, or where one of its claims leads, has changed.
func (c *Controller) Heard(pod string) { c.binder.news.heard(pod) }

// Bind binds a pod whose volumes nobody else contends for: see bind.Binder.
func (c *Controller) Bind(ctx context.Context, r bind.Request) error {
	reservation, err := c.reserveSoon(ctx, r)
	if err == nil {
		defer c.binder.done(reservation.ID.Namespace)
		err = c.carry(ctx, &reservation, r.Version)
	}
	c.config.Metrics.Bind(resultOf(err))
	return err
}

// reserveSoon reserves for a pod, once it and its claims are seen.
func (c *Controller) reserveSoon(ctx context.Context, r bind.Request) (ledger.Ticket, error) {
	ctx, cancel := context.WithTimeout(ctx, c.binder.patience)
	defer cancel()
	defer c.binder.news.heard(string(r.Pod)) // so that nothing is kept for it; another request of the pod only looks again
	for {
		changed := c.binder.news.next(string(r.Pod)) // before the look, so that nothing is missed
		reservation, err := c.reserve(r)
		if !errors.Is(err, errBehind) {
			return reservation, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return reservation, err
		}
	}
}

// carry sends a bind whose reservation counts.
func (c *Controller) carry(ctx context.Context, reservation *ledger.Ticket, version string) error {
	err := c.config.Write.Carry(ctx, flow.Bind(reservation, version), nil)
	s := c.config.Cache.Snapshot()
	pod := s.Pod(reservation.Pod)
	switch {
	case err == nil, pod != nil && pod.Node == reservation.Node:
		return nil
	case errors.Is(err, flow.ErrStale), s.Ticket(reservation.ID) == nil:
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
	case pod == nil:
		return ledger.Ticket{}, errBehind
	case pod.Node != "" || pod.Phase != ledger.PodLive:
		return ledger.Ticket{}, fmt.Errorf("%w: it is bound, or is being deleted", bind.ErrUseTicket)
	case claimsUnseen(s, pod):
		return ledger.Ticket{}, errBehind
	case c.config.Serves != nil && !c.config.Serves(pod):
		return ledger.Ticket{}, errNotServed
	}
	reservation, can := c.config.Arbiter.BindAtOnce(s, pod, ledger.NodeName(r.Node), c.config.Now())
	if !can {
		return reservation, errContended
	}
	if !c.binder.begin(reservation.ID.Namespace) {
		return reservation, errBusy
	}
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
		{nil, "bound"}, {errNotLeading, "NotLeading"}, {errBehind, "Behind"}, {errNotServed, "NotServed"}, {errContended, "Contended"}, {errBusy, "Busy"},
		{bind.ErrUseTicket, "Changed"},
	} {
		if errors.Is(err, known.err) {
			return known.label
		}
	}
	return "unknown"
}
