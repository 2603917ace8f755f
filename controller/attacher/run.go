// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/connection"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
	"github.com/moorage-dev/moorage/controller/attacher/driver"
	"github.com/moorage-dev/moorage/controller/attacher/objects"
)

const (
	identifyTimeout = 5 * time.Second
	identifyRetry   = time.Second
)

// Run works until ctx is done, then waits for the steps under way and releases its lease. After an error,
// such as a lost lease or a changed driver, the process must start over with nothing remembered.
func Run(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	connection.SetMaxGRPCLogLength(c.MaxGRPCLog) // once in a process: it is global
	config, err := restConfig(c)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
	}
	// The lease has its own client, without delay.
	electionClient, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client of the API server: %w", err)
	}
	return run(ctx, c, client, electionClient)
}

type process struct {
	config   Config
	client   kubernetes.Interface
	driver   *driver.Driver
	identity driver.Identity
	lost     chan struct{} // the driver's connection
	engine   atomic.Pointer[engine]
	metrics  *collector
}

func run(ctx context.Context, c Config, client, electionClient kubernetes.Interface) error {
	p := &process{config: c, client: client, lost: make(chan struct{}, 1)}
	var err error
	p.driver, p.identity, err = driver.Connect(ctx, driver.Config{
		Address: c.Address, Timeout: identifyTimeout, Retry: identifyRetry, PageSize: int32(c.PageSize),
	})
	if err != nil {
		return err
	}
	defer p.driver.Close()
	p.metrics = newCollector(p.identity.Name, p.engine.Load)
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWatching()
	go p.driver.Watch(watching, p.disconnected)
	logger := klog.FromContext(ctx).WithValues("driver", p.identity.Name)
	ctx = klog.NewContext(ctx, logger)
	logger.Info("The CSI driver is there", "publishes", p.identity.Publishes, "lists", p.identity.Lists, "looks", p.identity.Looks)

	var health *leaderelection.HealthzAdaptor
	if c.Election.Enabled {
		health = leaderelection.NewLeaderHealthzAdaptor(healthTimeout)
	}
	stop, err := serve(ctx, c, p.driver.Metrics(), p.metrics, health)
	if err != nil {
		return err
	}
	defer stop()
	work := func(leading context.Context, held func() bool) error { return p.work(ctx, leading, held) }
	if !c.Election.Enabled {
		return work(context.WithoutCancel(ctx), func() bool { return true })
	}
	return hold(ctx, c.Election, electionClient, p.identity.Name, health, work)
}

func (p *process) disconnected() {
	select {
	case p.lost <- struct{}{}:
	default: // noted already
	}
}

// work runs until ctx or leading is done: the end of ctx lets steps end, that of leading cuts them off.
func (p *process) work(ctx, leading context.Context, held func() bool) error {
	leading = klog.NewContext(leading, klog.FromContext(ctx))
	e, err := newEngine(leading, p.engineConfig(held))
	if err != nil {
		return err
	}
	p.engine.Store(e)
	watching, stopWatching := context.WithCancel(leading)
	defer stopWatching()
	defer context.AfterFunc(ctx, stopWatching)()
	stopped, err := observe(watching, p.client, e, p.identity.Publishes)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer stopped()
	e.Start()
	klog.FromContext(ctx).Info("Working")
	err = p.follow(watching, e)
	e.Stop()
	stopWatching()
	return err
}

func (p *process) engineConfig(held func() bool) engineConfig {
	return engineConfig{
		Reader: objects.Reader{
			Driver:          p.identity.Name,
			PublishReadOnly: p.identity.PublishReadOnly, SingleNodeMultiWriter: p.identity.SingleNodeMultiWriter,
			DefaultFSType: p.config.DefaultFSType,
		},
		Rules: decide.Rules{
			Driver: p.identity.Name, Publishes: p.identity.Publishes, Looks: p.identity.Looks,
			Backoff: decide.Backoff{First: p.config.RetryFirst, Max: p.config.RetryMax}, Random: rand.Float64,
		},
		API: newKubeAPI(p.client), Backend: p.driver, Clock: systemClock{},
		Timeout: p.config.Timeout, Workers: p.config.Workers,
		Leading: held, Run: func(f func()) { go f() }, Count: p.metrics.count,
	}
}

var errDriverChanged = errors.New("the CSI driver has changed its name or capabilities: starting over")

// follow compares the driver's list and reconnects, until ctx is done.
func (p *process) follow(ctx context.Context, e *engine) error {
	var list <-chan time.Time
	if p.identity.Lists {
		ticker := time.NewTicker(p.config.ReconcileSync)
		defer ticker.Stop()
		list = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-list:
			p.reconcile(ctx, e)
		case <-p.lost:
			klog.FromContext(ctx).Info("The connection to the CSI driver is lost: nothing begins until it is back")
			e.Pause()
			identity, err := p.driver.Identify(ctx)
			if err != nil {
				return nil // ctx is done
			}
			if identity != p.identity {
				return errDriverChanged
			}
			klog.FromContext(ctx).Info("The CSI driver is back")
			e.Resume()
		}
	}
}

// reconcile gives the driver all the time until the next comparison.
func (p *process) reconcile(ctx context.Context, e *engine) {
	ctx, cancel := context.WithTimeout(ctx, max(p.config.Timeout, p.config.ReconcileSync))
	defer cancel()
	if err := e.Reconcile(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "Attachments were not compared with the driver's list")
	}
}
