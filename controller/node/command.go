// SPDX-License-Identifier: Apache-2.0

package node

import (
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/access"
	"github.com/moorage-dev/moorage/internal/connect"
	"github.com/moorage-dev/moorage/internal/memory"
)

// NewCommand returns moorage-node's command line. It works until its context is done, or until it can't see
// mounts change.
func NewCommand() *cobra.Command {
	config := DefaultConfig()
	command := &cobra.Command{
		Use:   "moorage-node",
		Short: "Publish what a node itself has staged, published and mounted",
		Long: `moorage-node reads its kubelet's folder and the mount table, and writes what it
finds into the NodeMountReport of its node's name: only when something has changed,
and nothing else.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			memory.KeepWithinLimit(klog.FromContext(command.Context()))
			return Run(command.Context(), config)
		},
	}
	flags := command.Flags()
	connect.AddFlags(flags, &config.Kubeconfig)
	flags.StringVar(&config.Node, "node", config.Node, "name of the Node that this is; when empty, the one that the service account's token names")
	flags.StringVar(&config.NodeUID, "node-uid", config.NodeUID, "with --node: UID of that Node")
	flags.StringVar(&config.KubeletRoot, "kubelet-root", config.KubeletRoot, "the kubelet's --root-dir, mounted at the same path")
	flags.StringVar(&config.Listen, "listen", config.Listen, "host:port for /healthz and /metrics; none when empty")
	flags.BoolVar(&config.SecureMetrics, "secure-metrics", config.SecureMetrics, access.SecureMetricsHelp)
	flags.DurationVar(&config.Gather, "gather", config.Gather, "time after a mount changed to look: many change together")
	flags.DurationVar(&config.Rescan, "rescan", config.Rescan, "time after which to look again when no mount changes")
	flags.DurationVar(&config.WriteTimeout, "write-timeout", config.WriteTimeout, "longest time that one request may take")
	return command
}
