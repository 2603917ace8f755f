// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/controller/node"
)

// newNode is moorage-node without mounts: files name its mounts and its boot, because it shares its
// machine.
func newNode() *cobra.Command {
	config := node.DefaultConfig()
	config.Listen = ""
	command := &cobra.Command{
		Use:   "moorage-node",
		Short: "Publish what a node of the sandbox has staged, published and mounted",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config.Gather = min(config.Gather, config.Rescan)
			return node.Run(command.Context(), config)
		},
	}
	flags := command.Flags()
	flags.StringVar(&config.Kubeconfig, "kubeconfig", "", "how to reach the API server")
	flags.StringVar(&config.KubeletRoot, "kubelet-root", "", "the kubelet's folder")
	flags.StringVar(&config.Mounts, "mounts", "", "the mount table, in the form of mountinfo")
	flags.StringVar(&config.BootID, "boot-id-file", "", "the file that has the boot's ID")
	flags.DurationVar(&config.Rescan, "rescan", config.Rescan, "time after which to look again")
	return command
}
