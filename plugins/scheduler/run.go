// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/component-base/configz"
	utilversion "k8s.io/component-base/version"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	schedulerconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	conversionv1 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1"

	"github.com/moorage-dev/moorage/internal/lead"
	"github.com/moorage-dev/moorage/plugins/internal/binding"
)

const catchUpAgain = time.Second

type plugin interface {
	WaitForSync(context.Context) error
	CatchUp(ctx context.Context, until func() time.Time) error
	DecideTickets(ctx context.Context, term lead.Term) (decide func(), err error)
	Settle(context.Context) error
}

type answerer interface {
	Run(context.Context) error
	Lead(ctx context.Context, until func() time.Time)
}

type loop interface {
	WaitForHandlersSync(context.Context) error
	Run(context.Context)
}

// process is a kube-scheduler with three differences. Its caches are complete before it competes for the
// Lease, for any delayCacheUntilActive. It begins to schedule when no write of the former leader can come
// any more. It gives the Lease up when each Binding's outcome is known. It takes no part in coordinated
// leader election.
type process struct {
	config    *schedulerconfig.CompletedConfig
	scheduler loop
	hold      plugin
	extender  answerer // nil: no answers to other schedulers

	synced  atomic.Bool // the caches are complete
	leading atomic.Bool // pods are scheduled
}

// run schedules until ctx is done, or the lease is lost: lead.ErrLost. life ends after it.
func (p *process) run(ctx, life context.Context) error {
	klog.FromContext(ctx).Info("Starting kube-scheduler with Moorage's plugins", "version", utilversion.Get())
	if err := p.publishConfig(); err != nil {
		return err
	}
	defer configz.Delete(configName)
	p.config.EventBroadcaster.StartRecordingToSink(life.Done())
	defer p.config.EventBroadcaster.Shutdown()
	stopServing, err := p.serve(ctx)
	if err != nil {
		return err
	}
	err = p.answer(ctx, life)
	stopServing(!errors.Is(err, lead.ErrLost))
	return err
}

// answer answers other schedulers until all Bindings are settled. Once ctx is done it takes no calls about
// pods with volumes. If the lease is lost, it waits for no running answer.
func (p *process) answer(ctx, life context.Context) error {
	if p.extender == nil {
		return p.work(ctx, life)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	answering, stopAnswering := context.WithCancel(life)
	answered := make(chan error, 1)
	go func() {
		defer stop()
		answered <- p.extender.Run(answering)
	}()
	err := p.work(ctx, life)
	stopAnswering()
	if errors.Is(err, lead.ErrLost) {
		return err
	}
	return errors.Join(err, <-answered)
}

const configName = "componentconfig"

func (p *process) publishConfig() error {
	shown := &configv1.KubeSchedulerConfiguration{}
	if err := conversionv1.Convert_config_KubeSchedulerConfiguration_To_v1_KubeSchedulerConfiguration(&p.config.ComponentConfig, shown, nil); err != nil {
		return fmt.Errorf("the configuration can't be shown: %w", err)
	}
	shown.SetGroupVersionKind(configv1.SchemeGroupVersion.WithKind("KubeSchedulerConfiguration"))
	z, err := configz.New(configName)
	if err != nil {
		return err
	}
	return z.Set(shown)
}

// work fills the caches, and schedules while this process leads, or at once without an election.
func (p *process) work(ctx, life context.Context) error {
	if err := p.sync(ctx, life); err != nil {
		return nil // only the end of ctx ends it
	}
	election := p.config.LeaderElection
	if election == nil {
		return p.schedule(ctx, lead.Term{Until: func() time.Time { return time.Time{} }})
	}
	return lead.LeadBy(ctx, lead.Config{
		Name:         election.Name,
		Times:        lead.Times{Duration: election.LeaseDuration, RenewDeadline: election.RenewDeadline, RetryPeriod: election.RetryPeriod},
		WriteTimeout: binding.RequestTimeout,
	}, election.Lock, election.WatchDog, p.schedule)
}

func (p *process) sync(ctx, life context.Context) error {
	p.config.InformerFactory.Start(life.Done())
	p.config.InformerFactory.WaitForCacheSync(ctx.Done())
	if dynamic := p.config.DynInformerFactory; dynamic != nil {
		dynamic.Start(life.Done())
		dynamic.WaitForCacheSync(ctx.Done())
	}
	if err := p.scheduler.WaitForHandlersSync(ctx); err != nil {
		return err
	}
	if err := p.hold.WaitForSync(ctx); err != nil {
		return err
	}
	p.synced.Store(true)
	return nil
}

// schedule takes in the former leader's work, and schedules until ctx is done. It returns when each
// Binding's outcome is known, or with lead.ErrUnsettled.
func (p *process) schedule(ctx context.Context, term lead.Term) error {
	log := klog.FromContext(ctx)
	err := wait.PollUntilContextCancel(ctx, catchUpAgain, true, func(ctx context.Context) (bool, error) {
		err := p.hold.CatchUp(ctx, term.Until)
		if err != nil {
			log.Error(err, "Nothing is scheduled yet: what claims volumes can't be read; it is read again")
		}
		return err == nil, nil
	})
	if err != nil {
		return nil // nothing was bound
	}
	decide, err := p.hold.DecideTickets(ctx, term)
	if err != nil {
		return err
	}
	log.Info("Scheduling")
	p.leading.Store(true)
	var announcing, deciding sync.WaitGroup
	defer announcing.Wait()
	if p.extender != nil {
		announcing.Go(func() { p.extender.Lead(ctx, term.Until) })
	}
	deciding.Go(decide)
	p.scheduler.Run(ctx)
	p.leading.Store(false)
	deciding.Wait()

	settling, cancel := context.WithTimeout(wait.ContextForChannel(term.Lost), binding.RequestTimeout)
	defer cancel()
	if err := p.hold.Settle(settling); err != nil {
		return fmt.Errorf("%w: %w", lead.ErrUnsettled, err)
	}
	log.Info("Scheduling has ended, and no Binding is under way")
	return nil
}
