// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	schedulerconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/moorage-dev/moorage/plugins/extender"
	"github.com/moorage-dev/moorage/plugins/promptbinding"
	"github.com/moorage-dev/moorage/plugins/volumehold"
)

// NewCommand returns the command line of the role scheduler: kube-scheduler's own flags, the plugins
// VolumeHold and PromptVolumeBinding, and SetDefaults. It leaves out features with unserved resources
// (docs/decisions/0056). Each command makes one scheduler.
func NewCommand() *cobra.Command {
	if err := SetDefaults(); err != nil {
		// The gate costs only a write for each pod.
		klog.Background().V(1).Info("Pods will be nominated while they wait in Permit", "why", err.Error())
	}
	opts, others := options.NewOptions(), extender.DefaultConfig()
	command := &cobra.Command{
		Use:   "scheduler",
		Short: "Place pods: kube-scheduler with Moorage's plugins",
		Long: "Places pods as kube-scheduler does. The plugin VolumeHold keeps a pod from a node that its\n" +
			"volumes can't follow it to, and counts the volumes of placed pods. One process of several leads.\n\n" +
			"With --extender-listen it answers, by the same rules, schedulers that can't load the plugin\n" +
			"(docs/operate/modes.md#the-extender).",
		Args: cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return opts.ComponentGlobalsRegistry.Set() // before any gate is read
		},
		RunE: func(command *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			gates := opts.ComponentGlobalsRegistry.FeatureGateFor(compatibility.DefaultKubeComponent)
			if err := logsapi.ValidateAndApply(opts.Logs, gates); err != nil {
				return err
			}
			cliflag.PrintFlags(command.Flags())
			ctx, stop := signal.NotifyContext(contextOf(command), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return setUpAndRun(ctx, opts, gates, volumehold.NewFactory(), others)
		},
	}
	others.AddFlags(opts.Flags.FlagSet("extender"))
	verflag.AddFlags(opts.Flags.FlagSet("global"))
	globalflag.AddGlobalFlags(opts.Flags.FlagSet("global"), command.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range opts.Flags.FlagSets {
		command.Flags().AddFlagSet(set)
	}
	width, _, _ := term.TerminalSize(command.OutOrStdout())
	cliflag.SetUsageAndHelpFunc(command, *opts.Flags, width)
	heedServed(command)
	return command
}

// setUpAndRun runs a scheduler until ctx is done. Caches, events and Bindings under way outlive ctx: they
// end after scheduling has ended.
func setUpAndRun(ctx context.Context, opts *options.Options, gates featuregate.FeatureGate, hold *volumehold.Factory, others extender.Config) error {
	if opts.InformerName == nil {
		name, err := cache.NewInformerName("kube-scheduler")
		if err != nil {
			return err
		}
		defer name.Release() // the process's next scheduler has the same name
		opts.InformerName = name
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	config, scheduler, err := app.Setup(life, opts,
		app.WithPlugin(volumehold.Name, Checked(hold)),
		app.WithPlugin(promptbinding.Name, promptbinding.New))
	if err != nil {
		return err
	}
	if gates, ok := gates.(featuregate.MutableFeatureGate); ok {
		gates.AddMetrics()
	}
	opts.ComponentGlobalsRegistry.AddMetrics()
	p := &process{config: config, scheduler: scheduler, hold: hold}
	if others.Listen != "" {
		if p.extender, err = newExtender(others, config, hold); err != nil {
			return err
		}
	}
	return p.run(ctx, life)
}

func newExtender(others extender.Config, config *schedulerconfig.CompletedConfig, hold *volumehold.Factory) (*extender.Extender, error) {
	facts, placer := hold.Shared()
	if facts == nil {
		return nil, fmt.Errorf("--extender-listen needs the plugin %s in a profile", volumehold.Name)
	}
	own := rest.CopyConfig(config.KubeConfig)
	own.UserAgent, own.QPS, own.Burst, own.RateLimiter = "moorage-scheduler/extender", 500, 1000, nil
	kube, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, err
	}
	options := extender.Options{Config: others, Facts: facts, Placer: placer, Pods: config.InformerFactory.Core().V1().Pods().Informer(), Kube: kube}
	if config.LeaderElection != nil {
		options.Namespace = config.ComponentConfig.LeaderElection.ResourceNamespace
	} else if others.Service != "" {
		return nil, errors.New("--extender-service needs leader election: the Service is in the namespace of the Lease")
	}
	return extender.New(options)
}

// Checked returns a factory of plugins that refuse an unsuitable profile at the start, and turn a panic
// into an error of the pod.
func Checked(f *volumehold.Factory) runtime.PluginFactory {
	return func(ctx context.Context, args apiruntime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		made, err := f.New(ctx, args, handle)
		if err != nil {
			return nil, err
		}
		hold, ok := made.(*volumehold.VolumeHold)
		if !ok {
			return nil, fmt.Errorf("plugin %s is a %T", volumehold.Name, made)
		}
		return &checked{guarded: guarded{hold}, handle: handle}, nil
	}
}
