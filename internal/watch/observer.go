// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/ledger"
)

const retryInterval = time.Second

// Observer keeps a ledger up to date. Safe for parallel use.
type Observer struct {
	config   Config
	ledger   *ledger.Ledger
	feeds    map[Kind]*feed
	synced   chan struct{}
	attacher sync.Map // attachers' finalizers seen on PersistentVolumes

	mu          sync.Mutex
	subscribers []func(ledger.Touched)
	refused     []func(uid string)
}

// New returns an Observer. Call it before a shared Factory's start.
func New(config Config) (*Observer, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if len(config.Kinds) == 0 {
		config.Kinds = AllKinds()
	}
	facts := ledger.New
	if config.Reader {
		facts = ledger.NewReader
	}
	o := &Observer{
		config: config,
		ledger: facts(),
		feeds:  map[Kind]*feed{},
		synced: make(chan struct{}),
	}
	if err := o.connect(); err != nil {
		return nil, fmt.Errorf("observe: %w", err)
	}
	return o, nil
}

// Ledger returns the Observer's ledger. Give it proofs through Apply, so that subscribers hear of them.
func (o *Observer) Ledger() *ledger.Ledger { return o.ledger }

// Snapshot returns the present facts.
func (o *Observer) Snapshot() ledger.Snapshot { return o.ledger.Snapshot() }

// Subscribe has f called after the ledger has taken in an event. f must return at once.
func (o *Observer) Subscribe(f func(ledger.Touched)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.subscribers = append(o.subscribers[:len(o.subscribers):len(o.subscribers)], f)
}

// SubscribeRefused has f called with the UID of each changed pod that has no node and a scheduler's
// message. f must return at once.
func (o *Observer) SubscribeRefused(f func(uid string)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refused = append(o.refused[:len(o.refused):len(o.refused)], f)
}

func (o *Observer) publishRefused(pod *corev1.Pod) {
	if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return refused(pod, c) }) {
		return
	}
	o.mu.Lock()
	subscribers := o.refused
	o.mu.Unlock()
	for _, f := range subscribers {
		f(string(pod.UID))
	}
}

// Apply takes in an event that no informer brings: a proof, the end of a ticket.
func (o *Observer) Apply(e ledger.Event) {
	o.publish(o.ledger.Apply(o.config.Now(), e))
}

// Saw takes in an object of a response, if it is news. Unobserved kinds are ignored.
func (o *Observer) Saw(object runtime.Object) {
	if kind, ok := kindOf(object); ok {
		if f := o.feeds[kind]; f != nil {
			f.saw(object)
		}
	}
}

func (o *Observer) publish(t ledger.Touched) {
	if len(t.Volumes) == 0 && len(t.Nodes) == 0 && len(t.Tickets) == 0 && len(t.Pods) == 0 && len(t.Policies) == 0 {
		return
	}
	o.mu.Lock()
	subscribers := o.subscribers
	o.mu.Unlock()
	for _, f := range subscribers {
		f(t)
	}
}

// Run observes until ctx is done.
func (o *Observer) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for kind, f := range o.feeds {
		if moorageKind(kind) || o.config.Factory == nil && kind != Pods {
			running.Go(func() { f.informer.RunWithContext(ctx) })
		}
	}
	running.Go(func() { o.sweep(ctx) })
	if err := o.sync(ctx, &running); err == nil {
		o.Apply(ledger.Complete{})
		failed := o.readLeasesFirst(ctx)
		running.Go(func() { o.pollLeases(ctx, failed) })
		klog.FromContext(ctx).Info("Caches are complete", "volumes", o.Snapshot().Size())
		close(o.synced)
	}
	<-ctx.Done()
}

// sync brings the pods in after the tickets.
func (o *Observer) sync(ctx context.Context, running *sync.WaitGroup) error {
	if err := o.wait(ctx, o.feeds[Tickets]); err != nil {
		return err
	}
	var position string
	if err := persist(ctx, func() (err error) { position, err = o.position(ctx); return err }); err != nil {
		return err
	}
	pods := o.feeds[Pods]
	if o.config.Factory == nil {
		running.Go(func() { pods.informer.RunWithContext(ctx) })
	}
	for _, f := range o.feeds {
		if err := o.wait(ctx, f); err != nil {
			return err
		}
	}
	if !ledger.Newer(position, pods.informer.LastSyncResourceVersion()) {
		return nil
	}
	return persist(ctx, func() error { return o.listPods(ctx) })
}

// wait returns when the ledger has a feed's first list.
func (o *Observer) wait(ctx context.Context, f *feed) error {
	select {
	case <-f.registration.HasSyncedChecker().Done():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for %s: %w", f.kind, context.Cause(ctx))
	}
}

func persist(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		klog.FromContext(ctx).Error(err, "The caches wait for the API server; it is asked again")
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(retryInterval):
		}
	}
}

// WaitForSync returns when every kind has been seen whole: decide nothing before. Its error is the
// context's.
func (o *Observer) WaitForSync(ctx context.Context) error {
	select {
	case <-o.synced:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the caches: %w", context.Cause(ctx))
	}
}

// HasSynced says whether WaitForSync would return at once.
func (o *Observer) HasSynced() bool {
	select {
	case <-o.synced:
		return true
	default:
		return false
	}
}
