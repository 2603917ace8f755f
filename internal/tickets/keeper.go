// SPDX-License-Identifier: Apache-2.0

package tickets

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/work"
	"github.com/moorage-dev/moorage/internal/write"
)

// Cache is the view of the cluster (package watch).
type Cache interface {
	Snapshot() ledger.Snapshot
	Apply(ledger.Event)
	Ticket(ledger.TicketID) (*v1alpha1.VolumeTicket, bool)
}

// Writer writes (package write).
type Writer interface {
	Carry(context.Context, protocol.Task, write.Status) error
}

// Config is a Keeper's environment. Only Turn may be unset.
type Config struct {
	Cache   Cache
	Write   Writer
	Arbiter rules.Arbiter
	Now     func() time.Time
	// Order is held during each promise to a ticket or a pod.
	Order sync.Locker
	Waits *Waits
	// Turn waits before another message to a waiting ticket; nil: no wait.
	Turn func(context.Context) error
}

// Validate names a missing field.
func (c Config) Validate() error {
	if c.Cache == nil || c.Write == nil || c.Now == nil || c.Order == nil || c.Waits == nil {
		return errors.New("tickets: Cache, Write, Now, Order and Waits are needed")
	}
	return nil
}

const grantsName = "grants"

// Keeper decides on tickets during one term. Safe for parallel use, except where the caller must hold a
// lock.
type Keeper struct {
	config           Config
	nodes            *work.Queue[ledger.NodeName] // pending tickets by node
	rest             *work.Queue[ledger.TicketID] // no grants
	volumes          *work.Queue[ledger.VolumeID] // touched
	placementLimiter placementLimiter
	refused          refused
	telling          telling
	told             chan struct{}
	writing          sync.WaitGroup
	term             atomic.Pointer[context.Context] // the context of Run

	mu     sync.Mutex
	before ledger.Snapshot // at the last check of time
	at     time.Time       // the time of the facts in before
}

// New returns a Keeper.
func New(config Config) (*Keeper, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if config.Turn == nil {
		config.Turn = func(context.Context) error { return nil }
	}
	k := &Keeper{config: config, told: make(chan struct{}, maxTold), before: config.Cache.Snapshot(), at: config.Now()}
	k.nodes = work.New(grantsName, k.grantAt)
	k.rest = work.NewInTurns("tickets", func(id ledger.TicketID) string { return id.Namespace }, k.reconcile)
	k.volumes = work.New("touched volumes", k.touchedVolume)
	config.Waits.subscribe(k.wake)
	return k, nil
}

const timePasses = time.Second

// Run decides until ctx is done, and returns after the last write. It first takes over tickets in doubt.
// nodes and others are numbers of workers, for nodes and for other work.
func (k *Keeper) Run(ctx context.Context, nodes, others int) {
	k.term.Store(&ctx)
	var running sync.WaitGroup
	running.Go(func() {
		k.takeOver(ctx, others)
		k.nodes.Run(ctx, nodes)
	})
	running.Go(func() { k.rest.Run(ctx, others) })
	running.Go(func() { k.volumes.Run(ctx, 1) })
	for t := range k.config.Cache.Snapshot().Tickets() {
		k.rest.Add(t.ID)
	}
	tick := time.NewTicker(timePasses)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			k.Lapse()
		}
	}
	running.Wait()
	k.config.Order.Lock()
	k.term.Store(nil) // now Before writes nothing
	k.config.Order.Unlock()
	k.writing.Wait()
}

// Touched queues the concerned keys. It returns at once.
func (k *Keeper) Touched(t ledger.Touched) {
	for _, v := range t.Volumes {
		k.volumes.Add(v)
	}
	for _, id := range t.Tickets {
		k.rest.Add(id)
	}
	if len(t.Nodes)+len(t.Pods) == 0 {
		return
	}
	s := k.config.Cache.Snapshot()
	for _, n := range t.Nodes {
		if protocol.Pending(s, n) {
			k.nodes.Add(n)
		}
		for _, id := range protocol.EmptiedWith(s, n) {
			k.rest.Add(id)
		}
	}
	k.podsTouched(s, t.Pods)
}

func (k *Keeper) podsTouched(s ledger.Snapshot, uids []string) {
	nodes, volumes, asks := k.config.Waits.touched(s, uids, k.config.Now())
	k.wake(nodes, asks)
	for _, v := range volumes {
		k.volumes.Add(v)
	}
}

func (k *Keeper) wake(nodes []ledger.NodeName, tickets []ledger.TicketID) {
	for _, n := range nodes {
		k.nodes.Add(n)
	}
	for _, id := range tickets {
		k.rest.Add(id)
	}
}

func (k *Keeper) touchedVolume(_ context.Context, id ledger.VolumeID) (time.Duration, error) {
	tickets, _, nodes := protocol.Users(k.config.Cache.Snapshot(), id)
	k.wake(nodes, tickets)
	return 0, nil
}

// Lapse queues the tickets that time alone may concern: a node of their volumes got fenced, or a pod is
// gone that the ledger never had.
func (k *Keeper) Lapse() {
	s, now := k.config.Cache.Snapshot(), k.config.Now()
	k.mu.Lock()
	before, at := k.before, k.at
	k.before, k.at = s, now
	k.mu.Unlock()
	for t := range s.Tickets() {
		if rules.FencedSince(before, at, s, now, rules.TicketRequest(s, t)) {
			k.rest.Add(t.ID)
		}
	}
	k.podsTouched(s, k.config.Waits.all())
}

func (k *Keeper) reconcile(ctx context.Context, id ledger.TicketID) (time.Duration, error) {
	s, now := k.config.Cache.Snapshot(), k.config.Now()
	t := s.Ticket(id)
	if t == nil {
		return 0, nil
	}
	if t.Phase == ledger.TicketPending && t.Node != "" {
		k.nodes.Add(t.Node)
	}
	keeps, again := k.keeps(s, t), rules.PlacedAgain(t, now)
	if t.InDoubt || again == 0 || k.placementLimiter.may(t.ID.Namespace) {
		if err := k.due(ctx, s, t, keeps); err != nil {
			return again, err
		}
	}
	again = protocol.Sooner(protocol.Sooner(again, rules.NoticeLeft(t, now)), rules.EndOf(s, t, now).Again)
	return again, k.stillAsked(ctx, t, keeps)
}

// keeps says no if a ticket yields and alone keeps a pod waiting.
func (k *Keeper) keeps(s ledger.Snapshot, t *ledger.Ticket) rules.Verdict {
	if t.Phase != ledger.TicketGranted {
		return rules.Verdict{}
	}
	now := k.config.Now()
	return k.config.Arbiter.Keeps(s, t, now).And(k.config.Waits.asked(k.config.Arbiter, s, t, now), t.ID.Namespace)
}

func (k *Keeper) due(ctx context.Context, s ledger.Snapshot, t *ledger.Ticket, keeps rules.Verdict) error {
	task, due := protocol.Due(k.config.Arbiter, s, t, keeps, k.config.Now())
	switch {
	case !due:
		return nil
	case task.Commit.EpochOnly:
		return k.takeOverOne(ctx, t)
	}
	return k.carry(ctx, task)
}

// The waiting user may have changed. Yielding's transition time stays.
func (k *Keeper) stillAsked(ctx context.Context, t *ledger.Ticket, keeps rules.Verdict) error {
	object, ok := k.config.Cache.Ticket(t.ID)
	if !ok || object.ResourceVersion != t.Version || !rules.OnNotice(t, k.config.Now()) || keeps.Allowed() {
		return nil
	}
	now := askedFor(object, t.YieldingSince, keeps)
	if Says(object, now) {
		return nil
	}
	next := object.DeepCopy()
	meta.SetStatusCondition(&next.Status.Conditions, now)
	return k.config.Write.Carry(ctx, protocol.Write(t), As(next))
}
