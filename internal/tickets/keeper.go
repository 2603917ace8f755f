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

// Cache is what is known: package watch has it.
type Cache interface {
	Snapshot() ledger.Snapshot
	Apply(ledger.Event)
	Ticket(ledger.TicketID) (*v1alpha1.VolumeTicket, bool)
}

// Writer is how things are written: package write has it.
type Writer interface {
	Carry(context.Context, protocol.Task, write.Status) error
}

// Config is what a Keeper works with. All but Turn must be set.
type Config struct {
	Cache   Cache
	Write   Writer
	Arbiter rules.Arbiter
	Now     func() time.Time
	// Order is held while anything is promised, to a ticket or to a pod.
	Order sync.Locker
	Waits *Waits
	// Turn waits until another ticket may be told why it waits; nil: at once.
	Turn func(context.Context) error
}

// Validate says what is missing.
func (c Config) Validate() error {
	if c.Cache == nil || c.Write == nil || c.Now == nil || c.Order == nil || c.Waits == nil {
		return errors.New("tickets: Cache, Write, Now, Order and Waits are needed")
	}
	return nil
}

// grantsName is what logs call the queue of nodes.
const grantsName = "grants"

// Keeper decides on tickets during one term. Its methods are safe for parallel use, unless they say
// what the caller holds.
type Keeper struct {
	config   Config
	nodes    *work.Queue[ledger.NodeName] // pending tickets, one node at a time
	rest     *work.Queue[ledger.TicketID] // tickets, apart from granting them
	volumes  *work.Queue[ledger.VolumeID] // touched
	placings placings
	refused  refused
	telling  telling
	told     chan struct{}
	writing  sync.WaitGroup
	term     atomic.Pointer[context.Context] // of Run

	mu     sync.Mutex
	before ledger.Snapshot // the facts when time was last looked at
	at     time.Time       // and when that was
}

// New returns a Keeper that is ready to Run.
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

// timePasses is how often it is looked at what has changed by time alone.
const timePasses = time.Second

// Run decides until ctx is done, and returns when the last write is answered or
// cancelled. Tickets of so many nodes are decided on at once, after those in doubt
// have been taken over, and so many others looked after.
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
	k.term.Store(nil) // from here on Before writes nothing
	k.config.Order.Unlock()
	k.writing.Wait()
}

// Touched has all looked at again that a change of the ledger matters to. It returns at once.
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

// podsTouched has the tickets looked at again that have waited for pods which wait no more.
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

// touchedVolume has the tickets looked at that a volume matters to.
func (k *Keeper) touchedVolume(_ context.Context, id ledger.VolumeID) (time.Duration, error) {
	tickets, _, nodes := protocol.Users(k.config.Cache.Snapshot(), id)
	k.wake(nodes, tickets)
	return 0, nil
}

// Lapse has the tickets looked at again to which time alone may matter: it has fenced a node that has
// one of their volumes, or a pod is gone for which they have waited, and which the ledger never had.
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

// reconcile looks at a ticket apart from granting it: whether it keeps its grant, and where it waits.
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
	if t.InDoubt || again == 0 || k.placings.may(t.ID.Namespace) {
		if err := k.due(ctx, s, t, keeps); err != nil {
			return again, err
		}
	}
	again = protocol.Sooner(protocol.Sooner(again, rules.NoticeLeft(s, t, now)), rules.EndOf(s, t, now).Again)
	return again, k.stillAsked(ctx, s, t, keeps)
}

// keeps says whether a granted ticket may keep its grant: not if it yields, and a pod waits for it
// alone.
func (k *Keeper) keeps(s ledger.Snapshot, t *ledger.Ticket) rules.Verdict {
	if t.Phase != ledger.TicketGranted {
		return rules.Verdict{}
	}
	now := k.config.Now()
	return k.config.Arbiter.Keeps(s, t, now).And(k.config.Waits.asked(k.config.Arbiter, s, t, now), t.ID.Namespace)
}

// due does what is due about a ticket: it is taken over, placed, asked to let go, or loses its grant.
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

// stillAsked keeps what condition Yielding says: the policy's time may be another one since, and
// somebody else may want the volumes. Since when it is True stays.
func (k *Keeper) stillAsked(ctx context.Context, s ledger.Snapshot, t *ledger.Ticket, keeps rules.Verdict) error {
	object, ok := k.config.Cache.Ticket(t.ID)
	if !ok || object.ResourceVersion != t.Version || !rules.OnNotice(s, t, k.config.Now()) || keeps.Allowed() {
		return nil
	}
	now := askedFor(object, t.YieldingSince, rules.YieldNotice(s, t), keeps)
	if Says(object, now) {
		return nil
	}
	next := object.DeepCopy()
	meta.SetStatusCondition(&next.Status.Conditions, now)
	return k.config.Write.Carry(ctx, protocol.Write(t), As(next))
}
