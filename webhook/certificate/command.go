// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/internal/connect"
)

const clientName = "moorage-certificate"

// NewCommand returns the command that makes or renews the certificate, once.
func NewCommand() *cobra.Command {
	config := DefaultConfig()
	command := &cobra.Command{
		Use:   "certificate",
		Short: "Make or renew the webhook's certificate, where cert-manager doesn't",
		Long: `certificate fills in the Secret with the webhook's serving certificate, if there
is none that is valid for long enough, and has the API server trust it. The
chart runs it as a Job at each change, and daily.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := config.Validate(); err != nil {
				return err
			}
			client, err := connect.Kube(config.Kubeconfig, clientName)
			if err != nil {
				return err
			}
			return Ensure(command.Context(), client, config, time.Now())
		},
	}
	flags := command.Flags()
	flags.StringVar(&config.Kubeconfig, "kubeconfig", config.Kubeconfig, "kubeconfig file; without one, the service account of the pod it runs in")
	flags.StringVar(&config.Namespace, "namespace", config.Namespace, "namespace of the Secret and the Service")
	flags.StringVar(&config.Secret, "secret", config.Secret, "Secret that gets the certificate; it must exist")
	flags.StringVar(&config.Service, "service", config.Service, "Service that the certificate is for")
	flags.StringVar(&config.WebhookConfiguration, "webhook-configuration", config.WebhookConfiguration, "MutatingWebhookConfiguration that is told whom to trust")
	flags.DurationVar(&config.Duration, "duration", config.Duration, "how long a certificate is valid")
	flags.DurationVar(&config.RenewBefore, "renew-before", config.RenewBefore, "how long before its end it is renewed")
	return command
}
