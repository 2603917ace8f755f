// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"github.com/spf13/cobra"
)

// NewCommand returns the command of the role webhook. It serves until its context is done.
func NewCommand() *cobra.Command {
	config := DefaultConfig()
	command := &cobra.Command{
		Use:   "webhook",
		Short: "Serve Moorage's admission webhook",
		Long: `The webhook answers the API server when a pod is created in a namespace
labelled moorage.dev/enforce=true: pods with volumes that can be attachable are
given to Moorage's scheduler and get the placeholder of their volume status. Pods
of a group are given to that scheduler without such volumes, too.

It needs no access to the API server, but for --secure-metrics.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			server, err := New(config)
			if err != nil {
				return err
			}
			return server.Run(command.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&config.Listen, "listen", config.Listen, "host:port to serve on; without a host on every address")
	flags.StringVar(&config.CertFile, "tls-cert-file", config.CertFile, "PEM file of the serving certificate, read again when it changes")
	flags.StringVar(&config.KeyFile, "tls-private-key-file", config.KeyFile, "PEM file of the serving certificate's key, read again when it changes")
	flags.StringVar(&config.SchedulerName, "scheduler-name", config.SchedulerName, "scheduler that pods of the default scheduler are given to")
	flags.BoolVar(&config.SecureMetrics, "secure-metrics", config.SecureMetrics, "answer /metrics only to bearer tokens whose account may get it, as the API server says")
	flags.StringVar(&config.Kubeconfig, "kubeconfig", config.Kubeconfig, "how --secure-metrics reaches the API server; without one by the pod's service account")
	flags.DurationVar(&config.ShutdownDelay, "shutdown-delay", config.ShutdownDelay, "time to go on serving after being told to stop, while reporting not ready")
	return command
}
