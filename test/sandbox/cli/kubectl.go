// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// newKubectlCommand embeds kubectl, pointed at the running cluster. Everything
// after the word kubectl is kubectl's.
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
			own, err := os.Executable()
			if err != nil {
				return err
			}
			if err := surround(filepath.Dir(own), info.Kubeconfig); err != nil {
				return err
			}
			kubectl := newKubectl(info.Kubeconfig, args, cmd.NewDefaultPluginHandler(plugin.ValidPluginFilenamePrefixes))
			return kubectl.ExecuteContext(c.Context())
		},
	}
}

// surround has plugins of kubectl found beside this program, where make puts that of
// Moorage, and ask the cluster.
func surround(folder, kubeconfig string) error {
	path := folder + string(os.PathListSeparator) + os.Getenv("PATH")
	return errors.Join(os.Setenv("PATH", path), os.Setenv("KUBECONFIG", kubeconfig))
}

// newKubectl makes kubectl for a cluster. Where args name a plugin the handler runs that
// here and now, in the place of this process.
func newKubectl(kubeconfig string, args []string, plugins cmd.PluginHandler) *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &kubeconfig
	kubectl := cmd.NewDefaultKubectlCommandWithArgs(cmd.KubectlOptions{
		PluginHandler: plugins,
		Arguments:     slices.Concat([]string{"kubectl"}, args),
		ConfigFlags:   flags,
		IOStreams:     genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
	})
	kubectl.SetArgs(args)
	return kubectl
}
