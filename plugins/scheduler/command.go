// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/moorage-dev/moorage/plugins/promptbinding"
	"github.com/moorage-dev/moorage/plugins/volumehold"
)

// NewCommand returns the command line of the role scheduler: kube-scheduler's
// own, with the plugins VolumeHold and PromptVolumeBinding at the disposal of its profiles, and
// SetDefaults. It leaves out features that read what the API server does not serve
// (decision 39). Each command makes one scheduler.
func NewCommand() *cobra.Command {
	if err := SetDefaults(); err != nil {
		// It costs a write for each pod, and nothing else.
		klog.Background().V(1).Info("Pods will be nominated while they wait for a grant", "why", err.Error())
	}
	command := app.NewSchedulerCommand(
		app.WithPlugin(volumehold.Name, Checked(volumehold.NewFactory())),
		app.WithPlugin(promptbinding.Name, promptbinding.New))
	command.Use = "scheduler"
	heedServed(command)
	return command
}

// Checked returns a factory of plugins that keep the scheduler from starting
// with a profile that they can't work in.
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
		return &checked{VolumeHold: hold, handle: handle}, nil
	}
}
