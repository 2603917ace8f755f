// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/controller/attachment"
	"github.com/moorage-dev/moorage/controller/networkfence"
	"github.com/moorage-dev/moorage/controller/operation"
	"github.com/moorage-dev/moorage/controller/policy"
	"github.com/moorage-dev/moorage/controller/ticket"
	"github.com/moorage-dev/moorage/controller/truth"
	"github.com/moorage-dev/moorage/controller/volumestatus"
	"github.com/moorage-dev/moorage/internal/connect"
	"github.com/moorage-dev/moorage/internal/lead"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/watch"
	"github.com/moorage-dev/moorage/internal/write"
)

// resync is the interval of full looks without a reason: a safety net only.
const resync = 5 * time.Minute

// maxBackgroundWrites limits parallel writes without a waiter: ends of reservations, pods' status. A slow
// API server is kept for writes that pods wait for.
const maxBackgroundWrites = 8

// gatherInterval is how often a node's unused volumes without a waiter leave volumesAttached.
const gatherInterval = time.Second

const flexInterval = 30 * time.Second

const wakers = 4

// Run runs the controller until ctx is done. It returns lead.ErrLost when
// another process may lead.
func Run(ctx context.Context, config Config) error {
	if err := config.Validate(); err != nil {
		return err
	}
	klog.FromContext(ctx).Info("Starting", "version", report.Version, "mode", config.Mode)
	var observer *watch.Observer // before the first scrape
	metrics := report.NewMetrics(func() ledger.Snapshot { return observer.Snapshot() })
	connection := config.connection()
	connection.Watches = metrics.Watches
	clients, err := connect.New(connection)
	if err != nil {
		return err
	}
	kinds, hears := config.kinds(ctx, clients.ReadMoorage)
	observer, err = watch.New(watch.Config{Kube: clients.Read, Moorage: clients.ReadMoorage, Kinds: kinds})
	if err != nil {
		return err
	}
	config.restrain(observer)
	health := &health{synced: observer.HasSynced}
	_, stopServing, err := config.serve(ctx, health, metrics.Registry)
	if err != nil {
		return err
	}
	defer stopServing()
	fences, err := config.watchFences(clients, observer.Snapshot)
	if err != nil {
		return err
	}
	contents := config.watchContents(clients)

	// Observation goes on until the last write is answered.
	observing, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { observer.Run(observing) })
	running.Go(func() { fences.Run(observing) })
	running.Go(func() { contents.Run(observing) })
	ctx, end := context.WithCancel(ctx)
	defer end()
	if !hears {
		running.Go(func() { config.awaitNodeWords(observing, clients.ReadMoorage, hearsEvery, end) })
	}

	guard, err := config.guard(clients.Write).settle(ctx)
	if err != nil {
		return err
	}
	if guard.goesOn {
		klog.FromContext(ctx).Info("Standalone mode goes on: to end it, hand over (docs/operate/modes.md)", "installed", config.Mode)
		config.Mode = ModeStandalone
	}
	if err := guard.await(ctx); err != nil {
		return err
	}
	health.guarded.Store(true)
	return leadTerms(ctx, guard, termConfig{Config: config, clients: clients, observer: observer, metrics: metrics, fences: fences, contents: contents})
}

func leadTerms(ctx context.Context, g guard, each termConfig) error {
	return lead.Lead(ctx, each.election(), each.clients.Lease, func(ctx context.Context, t lead.Term) error {
		return g.keep(ctx, func(ctx context.Context) error {
			this := each
			this.term, this.events = t, report.NewEvents(ctx, each.clients.Write)
			this.leading = func() { klog.FromContext(ctx).Info("Leading", "epoch", t.Epoch) }
			return serveTerm(ctx, this)
		})
	})
}

// restrain tells the ledger what is no proof: time, if the flag says so; and Nodes' conditions about
// storages, before the comparison with NetworkFences.
func (c Config) restrain(observer *watch.Observer) {
	if c.NoForceOnTimeout {
		observer.Apply(ledger.NoForceOnTimeout{})
	}
	observer.Apply(ledger.CutOffBelieved{Believed: false})
}

// watchFences is nil without the option.
func (c Config) watchFences(clients *connect.Clients, snapshot func() ledger.Snapshot) (*networkfence.Watcher, error) {
	if !c.NetworkFences {
		return nil, nil
	}
	return networkfence.NewWatcher(clients.ReadAny, snapshot)
}

// watchContents is nil without tickets for operations.
func (c Config) watchContents(clients *connect.Clients) *operation.Watcher {
	if !c.OperationTickets {
		return nil
	}
	return operation.NewWatcher(clients.Read.Discovery(), clients.ReadAny)
}

type termConfig struct {
	Config
	clients  *connect.Clients
	observer *watch.Observer
	metrics  *report.Metrics
	events   *report.Events
	fences   *networkfence.Watcher // nil without NetworkFences
	contents *operation.Watcher    // nil without tickets for operations
	term     lead.Term
	leading  func() // called when the first decision is allowed
}

// backgroundShare is the part of QPS for requests without a waiting pod.
const backgroundShare = 10

const writesAtOnce = 10

// serveTerm decides and writes until ctx is done and no write can have an effect any more: the next leader
// of a handed-over lease waits for nothing.
func serveTerm(ctx context.Context, c termConfig) error {
	if err := c.observer.WaitForSync(ctx); err != nil {
		return err
	}
	executor, err := write.New(write.Config{
		Kube: c.clients.Write, Moorage: c.clients.WriteMoorage, Observer: c.observer, Events: c.events,
		Timeout: c.WriteTimeout, Lease: c.term.Until, Epoch: c.term.Epoch,
		Turn:       flowcontrol.NewTokenBucketRateLimiter(c.QPS, c.Burst).Wait,
		Background: flowcontrol.NewTokenBucketRateLimiter(c.QPS/backgroundShare, 1).Wait,
		Token:      func() string { return string(uuid.NewUUID()) },
	})
	if err != nil {
		return err
	}
	defer handOver(ctx, executor, c.term)
	if err := executor.TakeOver(ctx); err != nil {
		return err
	}
	stages, err := newStages(c, executor)
	if err != nil {
		return err
	}
	defer c.metrics.Leads(stages.depths(), stages.volumeStatus.Waiting)()
	c.leading()
	c.observer.Subscribe(stages.wake.touched)
	c.observer.SubscribeRefused(stages.volumeStatus.Add)
	stages.wake.all()
	stages.run(ctx, c, executor)
	return nil
}

// handOver waits, at most the write timeout, until no write can have an effect. After a lost lease the next
// leader waits itself.
func handOver(ctx context.Context, executor *write.Executor, t lead.Term) {
	left := executor.OutlastUnanswered()
	if left <= 0 {
		return
	}
	klog.FromContext(ctx).Info("A write got no answer; waiting until it must be over before the lease is handed over", "for", left)
	select {
	case <-time.After(left):
	case <-t.Lost:
	}
}

// stages are a term's controllers: the whole program in one list.
type stages struct {
	attachments  *attachment.Controller
	tickets      *ticket.Controller
	volumeStatus *volumestatus.Controller
	policies     *policy.Controller
	fences       *networkfence.Controller // nil without NetworkFences
	operations   *operation.Controller    // nil without tickets for operations
	truth        *truth.Checker           // nil with DisableTruthCheck
	wake         *wake
}

func newStages(c termConfig, executor *write.Executor) (*stages, error) {
	rules := c.rules()
	attachments, err := attachment.New(attachment.Config{
		Snapshot: c.observer.Snapshot, Arbiter: rules, Do: executor, Now: time.Now, Gather: gatherInterval, Metrics: c.metrics, Events: c.events,
	})
	if err != nil {
		return nil, err
	}
	tickets, err := ticket.New(ticket.Config{
		Cache: c.observer, Write: executor, Arbiter: rules, Now: time.Now, Metrics: c.metrics, Events: c.events,
	})
	if err != nil {
		return nil, err
	}
	volumeStatus, err := volumestatus.New(volumestatus.Config{
		Cache: c.observer, Write: executor, Arbiter: rules, Now: time.Now, Grace: volumestatus.DefaultGrace, Events: c.events,
	})
	if err != nil {
		return nil, err
	}
	checker, err := newTruthCheck(c, truth.Repair{Volume: attachments.Later, Ticket: tickets.Add, Pod: volumeStatus.Later}, attachments.Waits)
	if err != nil {
		return nil, err
	}
	policies, err := policy.New(policy.Config{Cache: c.observer, Write: executor, Arbiter: rules, NetworkFences: c.NetworkFences, Operations: c.OperationTickets, Now: time.Now})
	if err != nil {
		return nil, err
	}
	fences, err := newFences(c)
	if err != nil {
		return nil, err
	}
	operations, err := newOperations(c)
	if err != nil {
		return nil, err
	}
	return &stages{attachments, tickets, volumeStatus, policies, fences, operations, checker, newWake(c.observer, attachments, tickets, volumeStatus, policies, checker)}, nil
}

// newTruthCheck returns nil with DisableTruthCheck.
func newTruthCheck(c termConfig, repair truth.Repair, waits func(ledger.VolumeID) bool) (*truth.Checker, error) {
	if c.DisableTruthCheck {
		return nil, nil
	}
	return truth.New(truth.Config{
		Cache: c.observer, Arbiter: c.rules(), Repair: repair, Now: time.Now, Interval: c.TruthCheckPeriod, Waits: waits, Metrics: c.metrics, Events: c.events,
	})
}

// newFences returns nil without the option.
func newFences(c termConfig) (*networkfence.Controller, error) {
	if c.fences == nil {
		return nil, nil
	}
	return networkfence.New(networkfence.Config{
		Watcher: c.fences, Cache: c.observer, Kube: c.clients.Write, Moorage: c.clients.WriteMoorage, Dynamic: c.clients.WriteAny,
		Turn: flowcontrol.NewTokenBucketRateLimiter(c.QPS/backgroundShare, 1).Wait, Timeout: c.WriteTimeout, Now: time.Now, Events: c.events,
	})
}

// newOperations returns nil without the option.
func newOperations(c termConfig) (*operation.Controller, error) {
	if c.contents == nil {
		return nil, nil
	}
	return operation.New(operation.Config{
		Watcher: c.contents, Cache: c.observer, Moorage: c.clients.WriteMoorage, Namespace: c.Namespace,
		Turn: flowcontrol.NewTokenBucketRateLimiter(c.QPS/backgroundShare, writesAtOnce).Wait, Timeout: c.WriteTimeout, Now: time.Now,
		Events: c.events, Metrics: c.metrics,
	})
}

func (s *stages) depths() map[string]func() int {
	depths := map[string]func() int{
		"volumes": s.attachments.Depth,
		"tickets": s.tickets.Depth,
		"pods":    s.volumeStatus.Depth,
	}
	if s.operations != nil {
		depths["operations"] = s.operations.Depth
	}
	return depths
}

func (s *stages) run(ctx context.Context, c termConfig, executor *write.Executor) {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { s.attachments.Run(ctx, c.Workers) })
	running.Go(func() { s.tickets.Run(ctx, min(c.Workers, maxBackgroundWrites)) })
	running.Go(func() { s.volumeStatus.Run(ctx, min(c.Workers, maxBackgroundWrites)) })
	running.Go(func() { s.policies.Run(ctx) })
	if s.fences != nil {
		running.Go(func() { s.fences.Run(ctx) })
	}
	if s.operations != nil {
		running.Go(func() { s.operations.Run(ctx) })
	}
	if s.truth != nil {
		running.Go(func() { s.truth.Run(ctx) })
	}
	running.Go(func() { s.wake.volumes.Run(ctx, wakers) })
	running.Go(func() { s.wake.nodes.Run(ctx, wakers) })
	tick, looks := time.NewTicker(resync), time.NewTicker(flexInterval)
	defer tick.Stop()
	defer looks.Stop()
	var flex flexVolumes
	flex.tell(c)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.wake.all()
			s.audit(ctx, c, executor)
		case <-looks.C:
			flex.tell(c)
		}
	}
}

func (s *stages) audit(ctx context.Context, c termConfig, executor *write.Executor) {
	snapshot := c.observer.Snapshot()
	executor.Prune(snapshot)
	found := c.rules().Audit(snapshot, time.Now())
	c.metrics.Violations(found)
	for _, v := range found {
		klog.FromContext(ctx).Error(fmt.Errorf("%s", v), "An invariant is broken")
	}
}
