// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/operation"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/work"
)

// Pauses between looks: the longest, and the shortest with changes. Looks take at most a tenth of the time.
const (
	longestPause  = 30 * time.Second
	shortestPause = 200 * time.Millisecond
	shareOfTime   = 10
)

const writers = 4

// Cache has the facts; package watch implements it.
type Cache interface {
	Snapshot() ledger.Snapshot
	Ticket(id ledger.TicketID) (*v1alpha1.VolumeTicket, bool)
	Works() []operation.Work
	Saw(object runtime.Object)
	Subscribe(f func(ledger.Touched))
	SubscribeWorks(f func())
}

// Events tells people; package report implements it.
type Events interface {
	OperationTicket(of report.Object, text string)
	// OperationHeld is false if the event must be told later.
	OperationHeld(of report.Object, code, text string) bool
}

// Metrics counts; package report implements it.
type Metrics interface {
	OperationTicket(operation, result string)
}

// Config is a Controller's configuration.
type Config struct {
	Watcher *Watcher
	Cache   Cache
	Moorage client.Interface
	// Namespace is Moorage's own.
	Namespace string
	// Turn waits for the next permitted request, Timeout bounds each.
	Turn    func(context.Context) error
	Timeout time.Duration
	Now     func() time.Time
	Events  Events
	Metrics Metrics
}

// Validate names missing fields.
func (c Config) Validate() error {
	if c.Watcher == nil || c.Cache == nil || c.Moorage == nil || c.Namespace == "" || c.Turn == nil || c.Timeout <= 0 || c.Now == nil || c.Events == nil || c.Metrics == nil {
		return errors.New("operation: Watcher, Cache, Moorage, Namespace, Turn, Timeout, Now, Events and Metrics are needed")
	}
	return nil
}

// Controller makes and ends tickets for operations while it runs.
type Controller struct {
	config Config
	queue  *work.Queue[ledger.TicketID]
	due    chan struct{}

	// For the looking goroutine only.
	own  map[ledger.TicketID]operation.Ticket
	past operation.Past
	told map[trouble]bool

	mu      sync.Mutex
	touched map[ledger.TicketID]bool
	todo    map[ledger.TicketID]job // open orders of the last look
}

type trouble struct{ uid, code string }

// New returns a Controller.
func New(config Config) (*Controller, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	c := &Controller{
		config: config, due: make(chan struct{}, 1),
		own: map[ledger.TicketID]operation.Ticket{}, told: map[trouble]bool{},
		touched: map[ledger.TicketID]bool{}, todo: map[ledger.TicketID]job{},
	}
	c.queue = work.NewInTurns("operations", func(id ledger.TicketID) string { return id.Namespace }, c.write)
	return c, nil
}

// Depth counts the due tickets.
func (c *Controller) Depth() int { return c.queue.Len() }

func (c *Controller) kick() {
	select {
	case c.due <- struct{}{}:
	default:
	}
}

func (c *Controller) touch(t ledger.Touched) {
	changed := len(t.Policies) > 0
	for _, id := range t.Tickets {
		if mayBeOurs(id) {
			c.mu.Lock()
			c.touched[id], changed = true, true
			c.mu.Unlock()
		}
	}
	if changed {
		c.kick()
	}
}

func mayBeOurs(id ledger.TicketID) bool {
	for _, o := range ledger.AllOperations() {
		if strings.HasPrefix(id.Name, strings.ToLower(o.String())+"-") {
			return true
		}
	}
	return false
}

// Run works until ctx is done and the last write is answered.
func (c *Controller) Run(ctx context.Context) {
	c.config.Cache.Subscribe(c.touch)
	c.config.Cache.SubscribeWorks(c.kick)
	c.config.Watcher.Subscribe(c.kick)
	for t := range c.config.Cache.Snapshot().Tickets() {
		c.touch(ledger.Touched{Tickets: []ledger.TicketID{t.ID}})
	}
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { c.queue.Run(ctx, writers) })
	for {
		began := time.Now()
		again := c.look(ctx)
		if !c.wait(ctx, again, max(shortestPause, (shareOfTime-1)*time.Since(began))) {
			return
		}
	}
}

// wait is false when ctx is done.
func (c *Controller) wait(ctx context.Context, longest, least time.Duration) bool {
	late, early := time.NewTimer(max(longest, least)), time.NewTimer(least)
	defer late.Stop()
	defer early.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-late.C:
		return true
	case <-c.due:
	}
	select {
	case <-ctx.Done():
		return false
	case <-early.C:
		return true
	}
}

// look decides once and orders writes. It returns the longest time to the next.
func (c *Controller) look(ctx context.Context) time.Duration {
	// The facts first: later reads identify their tickets as ours.
	s := operation.State{Snapshot: c.config.Cache.Snapshot(), Now: c.config.Now(), Namespace: c.config.Namespace, Past: c.past}
	c.refresh()
	snapshots, operations := asked(s.Snapshot)
	s.Tickets = c.there(s.Snapshot)
	if snapshots {
		c.config.Watcher.Need()
	}
	if !operations && len(s.Tickets) == 0 && len(c.past) == 0 {
		nothing := operation.Plan{} // also for repeated earlier orders
		c.order(nothing)
		c.tell(nothing)
		return longestPause
	}
	s.Works = c.config.Cache.Works()
	c.config.Watcher.state(&s, c.past.Owners())
	plan := s.Decide()
	c.past = plan.Past
	c.order(plan)
	c.tell(plan)
	if plan.Again == 0 || plan.Again > longestPause {
		return longestPause
	}
	return plan.Again
}

func asked(s ledger.Snapshot) (snapshots, operations bool) {
	for p := range s.Policies() {
		all := p.AttachFor | p.DetachFor
		snapshots = snapshots || all.Has(ledger.OperationSnapshot)
		operations = operations || all != 0
	}
	return snapshots, operations
}

func (c *Controller) refresh() {
	c.mu.Lock()
	touched := c.touched
	c.touched = map[ledger.TicketID]bool{}
	c.mu.Unlock()
	for id := range touched {
		delete(c.own, id)
		if object, found := c.config.Cache.Ticket(id); found {
			if t, ours := operation.TicketOf(object); ours {
				c.own[id] = t
			}
		}
	}
}

// there are our tickets that the facts also have. The answer to a DELETE shows a ticket's end before the
// informer does, and its later event reports nothing: a ticket that the facts lack is read again at the
// next look.
func (c *Controller) there(s ledger.Snapshot) (tickets []operation.Ticket) {
	for id, t := range c.own {
		if known := s.Ticket(id); known != nil && known.UID == t.UID {
			tickets = append(tickets, t)
			continue
		}
		c.mu.Lock()
		c.touched[id] = true
		c.mu.Unlock()
	}
	return tickets
}

// tell reports obstacles once while they last, and counts finished operations.
func (c *Controller) tell(plan operation.Plan) {
	now := map[trouble]bool{}
	for _, t := range plan.Troubles {
		key := trouble{t.Told.UID, t.Code}
		now[key] = c.told[key] || c.config.Events.OperationHeld(reported(t.Told), t.Code, t.Message)
	}
	c.told = now
	for _, o := range plan.Over {
		c.config.Metrics.OperationTicket(o.Operation.String(), string(o.Result))
	}
}

func reported(o operation.Object) report.Object {
	return report.Object{APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, UID: o.UID}
}
