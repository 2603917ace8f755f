// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/internal/connect"
	"github.com/moorage-dev/moorage/internal/lead"
	"github.com/moorage-dev/moorage/internal/watch"
	"github.com/moorage-dev/moorage/plugins/internal/binding"
)

const userAgent = "moorage-scheduler/volumehold"

// above a kube-scheduler's binds per second
const (
	requestsPerSecond = 500
	requestBurst      = 1000
)

// Many conditions must not delay a bind.
const (
	conditionsPerSecond = 50
	conditionBurst      = 100
)

// Factory makes the plugins of one kube-scheduler process, one per profile. They share the ledger: a
// reservation in one counts for all.
type Factory struct {
	connect    func(*rest.Config) (client.Interface, error)
	groups     func(*rest.Config) (dynamic.Interface, error)
	binds      func(*rest.Config, fwk.Handle) (kubernetes.Interface, error)
	conditions func(*rest.Config, fwk.Handle) (kubernetes.Interface, error)
	metrics    registry

	mu       sync.Mutex
	core     *core
	observer *watch.Observer // set with core
	writer   ticketWriter    // set with core
}

// NewFactory returns a Factory. Its New is a runtime.PluginFactory.
func NewFactory() *Factory {
	return &Factory{
		connect:    func(c *rest.Config) (client.Interface, error) { return client.NewForConfig(c) },
		groups:     func(c *rest.Config) (dynamic.Interface, error) { return dynamic.NewForConfig(c) },
		binds:      func(c *rest.Config, _ fwk.Handle) (kubernetes.Interface, error) { return kubernetes.NewForConfig(c) },
		conditions: func(c *rest.Config, _ fwk.Handle) (kubernetes.Interface, error) { return kubernetes.NewForConfig(c) },
		metrics:    processRegistry{},
	}
}

// NewFactoryFor returns a Factory with its own metrics, and these clients for Moorage's kinds and
// PodGroups.
func NewFactoryFor(c client.Interface, groups dynamic.Interface) *Factory {
	return &Factory{
		connect:    func(*rest.Config) (client.Interface, error) { return c, nil },
		groups:     func(*rest.Config) (dynamic.Interface, error) { return groups, nil },
		binds:      func(_ *rest.Config, h fwk.Handle) (kubernetes.Interface, error) { return h.ClientSet(), nil },
		conditions: func(_ *rest.Config, h fwk.Handle) (kubernetes.Interface, error) { return h.ClientSet(), nil },
		metrics:    metrics.NewKubeRegistry(),
	}
}

type processRegistry struct{}

func (processRegistry) Register(m metrics.Registerable) error { return legacyregistry.Register(m) }

func (processRegistry) CustomRegister(c metrics.StableCollector) error {
	return legacyregistry.CustomRegister(c)
}

// New makes the plugin of one profile. It connects to nothing: informers start with the handle's factory,
// and the rest ends with ctx.
func (f *Factory) New(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
	typed, err := decode(args)
	if err != nil {
		return nil, err
	}
	shared, err := f.shared(ctx, h)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	return &VolumeHold{core: shared, handle: h, weights: weightsOf(typed)}, nil
}

// shared makes the core for the first profile.
func (f *Factory) shared(ctx context.Context, h fwk.Handle) (*core, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.core != nil {
		return f.core, nil
	}
	own := rest.CopyConfig(h.KubeConfig())
	own.UserAgent, own.QPS, own.Burst, own.RateLimiter = userAgent, requestsPerSecond, requestBurst, nil
	tickets, err := f.connect(own)
	if err != nil {
		return nil, err
	}
	observer, err := watch.New(watch.Config{Kube: h.ClientSet(), Moorage: tickets, Factory: h.SharedInformerFactory(), Reader: true})
	if err != nil {
		return nil, err
	}
	groups, err := f.groups(own)
	if err != nil {
		return nil, err
	}
	punctual := rest.CopyConfig(own)
	punctual.Wrap(lead.Punctual)
	binds, err := f.binds(punctual, h)
	if err != nil {
		return nil, err
	}
	writes := rest.CopyConfig(punctual)
	writes.QPS, writes.Timeout = -1, binding.RequestTimeout
	writes.Wrap(connect.SendOnce)
	var writer ticketWriter
	if writer.kube, err = f.binds(writes, h); err != nil {
		return nil, err
	}
	if writer.moorage, err = f.connect(writes); err != nil {
		return nil, err
	}
	limited := rest.CopyConfig(own)
	limited.QPS, limited.Burst = conditionsPerSecond, conditionBurst
	conditions, err := f.conditions(limited, h)
	if err != nil {
		return nil, err
	}
	source, err := newGroupInformer(ctx, groups)
	if err != nil {
		return nil, err
	}
	made, err := newCore(ctx, config{Facts: observer, Handle: h, Metrics: f.metrics, Groups: source, Binds: binds, Conditions: conditions})
	if err != nil {
		return nil, err
	}
	go observer.Run(ctx)
	made.start(ctx)
	f.core, f.observer, f.writer = made, observer, writer
	return made, nil
}
