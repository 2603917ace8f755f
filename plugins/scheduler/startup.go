// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/moorage-dev/moorage/internal/served"
)

const (
	// askFor limits the wait for the API server. It is shorter than a liveness probe's patience: no probe
	// is answered meanwhile.
	askFor = 15 * time.Second
	// one request of several
	askTimeout = 2 * time.Second
	askAgain   = 5 * time.Minute
	// askSoon is the interval until the first answer.
	askSoon = 2 * time.Second
)

// heedServed works after the flags, and before the scheduler is made.
func heedServed(command *cobra.Command) {
	apply := command.PersistentPreRunE
	command.PersistentPreRunE = func(command *cobra.Command, args []string) error {
		if err := apply(command, args); err != nil {
			return err
		}
		if !runs(command) {
			return nil
		}
		gates := feature.DefaultMutableFeatureGate
		asked, err := discoveryOf(command)
		if err != nil {
			return err
		}
		s := &startup{
			gates: gates, flags: gates.DeepCopy(), log: klog.Background(),
			ask: func() (served.Resources, error) {
				return served.Ask(asked, served.GroupVersions(served.SchedulerFeatures())...)
			},
			restart: func() error { return syscall.Kill(os.Getpid(), syscall.SIGTERM) },
			after:   time.After,
		}
		return s.begin(contextOf(command))
	}
}

func runs(command *cobra.Command) bool {
	for _, name := range []string{"version", "write-config-to"} {
		if command.Flags().Changed(name) {
			return false
		}
	}
	return true
}

func contextOf(command *cobra.Command) context.Context {
	if ctx := command.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}

func discoveryOf(command *cobra.Command) (served.Discovery, error) {
	flag := func(name string) string {
		if f := command.Flags().Lookup(name); f != nil {
			return f.Value.String()
		}
		return ""
	}
	kubeconfig := flag("kubeconfig")
	if file := flag("config"); file != "" {
		config, err := options.LoadConfigFromFile(klog.Background(), file)
		if err != nil {
			return nil, err
		}
		kubeconfig = config.ClientConnection.Kubeconfig
	}
	config, err := clientcmd.BuildConfigFromFlags(flag("master"), kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("how to reach the API server: %w", err)
	}
	config.Timeout = askTimeout
	return discovery.NewDiscoveryClientForConfig(config)
}

type startup struct {
	gates   featuregate.MutableVersionedFeatureGate // of the process
	flags   featuregate.MutableVersionedFeatureGate // as flags have left them
	log     klog.Logger
	ask     func() (served.Resources, error)
	restart func() error
	after   func(time.Duration) <-chan time.Time
}

// Without an answer in time the scheduler begins with its flags' features, to answer probes while the API
// server is away, and asks again later.
func (s *startup) begin(ctx context.Context) error {
	resources, err := s.askWithin(ctx, askFor)
	if err != nil {
		s.log.Error(err, "It is not known what the API server serves; until it is, the scheduler waits for all that its features read")
		go s.watchUnknown(ctx)
		return nil
	}
	list := omissions(s.flags, resources)
	s.tell(list)
	if err := leaveOut(s.gates, list); err != nil {
		return err
	}
	go s.watch(ctx, switchedOff(list))
	return nil
}

func (s *startup) watchUnknown(ctx context.Context) {
	for s.pause(ctx, askSoon) {
		resources, err := s.ask()
		if err != nil {
			continue
		}
		list := omissions(s.flags, resources)
		s.tell(list)
		if off := switchedOff(list); len(off) > 0 {
			s.beginAnew("off", off)
			return
		}
		s.watch(ctx, nil)
		return
	}
}

// watch restarts the scheduler once an omitted feature is served. A resource that is no longer served is no
// reason: in an upgrade old and new API servers may answer in turn.
func (s *startup) watch(ctx context.Context, off []string) {
	for len(off) > 0 && s.pause(ctx, askAgain) {
		resources, err := s.ask()
		if err != nil {
			continue
		}
		if on := served.Without(off, switchedOff(omissions(s.flags, resources))); len(on) > 0 {
			s.beginAnew("on", on)
			return
		}
	}
}

func (s *startup) beginAnew(direction string, features []string) {
	s.log.Info("Ending, to begin anew with other features: the API server serves something else than was known at the start", direction, features)
	if err := s.restart(); err != nil {
		s.log.Error(err, "This process can't be ended; end it by hand")
	}
}

// false: the process ends.
func (s *startup) pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-s.after(d):
		return ctx.Err() == nil
	}
}

func switchedOff(list []omission) []string {
	var names []string
	for _, o := range list {
		for _, gate := range o.off {
			names = append(names, string(gate))
		}
	}
	return names
}

func (s *startup) askWithin(ctx context.Context, patience time.Duration) (served.Resources, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var resources served.Resources
	var last error
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(context.Context) (bool, error) {
		resources, last = s.ask()
		return last == nil, nil
	})
	if err != nil && last == nil {
		last = err
	}
	return resources, last
}

func (s *startup) tell(list []omission) {
	for _, o := range list {
		if o.kept != "" {
			s.log.Error(nil, "The API server does not serve what a feature reads, and the feature stays on: nothing is scheduled until it does",
				"feature", o.feature, "missing", o.missing, "why", o.kept)
			continue
		}
		s.log.Info("Left out a feature: the API server does not serve what it reads", "feature", o.feature, "missing", o.missing, "off", o.off)
	}
}
