// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"

	moorage "github.com/moorage-dev/moorage/internal/kubectl"
	"github.com/moorage-dev/moorage/test/sandbox"
)

func newKubectlCommand(s *Session) *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl …",
		Short:              "Run kubectl against the running cluster",
		DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			remote, err := sandbox.Find(c.Context(), s.dir, s.name)
			if err != nil {
				return err
			}
			info, err := remote.Info(c.Context())
			if err != nil {
				return err
			}
			streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
			return runKubectl(c.Context(), info.Kubeconfig, args, streams)
		},
	}
}

// Moorage's plugin is part of this program; others are found in $PATH and replace this process.
func runKubectl(ctx context.Context, kubeconfig string, args []string, streams genericiooptions.IOStreams) error {
	if err := os.Setenv("KUBECONFIG", kubeconfig); err != nil { // for plugins
		return err
	}
	if len(args) > 0 && args[0] == "moorage" {
		if code := moorage.Run(ctx, streams, args[1:]); code != 0 {
			return &reported{code}
		}
		return nil
	}
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &kubeconfig
	kubectl := cmd.NewDefaultKubectlCommandWithArgs(cmd.KubectlOptions{
		PluginHandler: cmd.NewDefaultPluginHandler(plugin.ValidPluginFilenamePrefixes),
		Arguments:     slices.Concat([]string{"kubectl"}, args),
		ConfigFlags:   flags,
		IOStreams:     streams,
	})
	kubectl.SetArgs(args)
	return kubectl.ExecuteContext(ctx)
}
