// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"

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
			flags := genericclioptions.NewConfigFlags(true)
			flags.KubeConfig = &info.Kubeconfig
			kubectl := cmd.NewDefaultKubectlCommandWithArgs(cmd.KubectlOptions{
				Arguments:   slices.Concat([]string{"kubectl"}, args),
				ConfigFlags: flags,
				IOStreams:   genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
			})
			kubectl.SetArgs(args)
			return kubectl.ExecuteContext(c.Context())
		},
	}
}
