// SPDX-License-Identifier: Apache-2.0

package check

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/internal/connect"
)

const clientName = "moorage-check"

// Config names the objects to check.
type Config struct {
	Kubeconfig           string
	Namespace            string        // of the Leases
	Leases               []string      // each must be renewed
	WebhookConfiguration string        // has the CA of the webhook's certificate
	URL                  string        // for AdmissionReviews
	Timeout              time.Duration // after it a fault is an error
}

// NewCommand returns the command that checks an installed Moorage, once.
func NewCommand() *cobra.Command {
	config := Config{
		Namespace: "moorage-system", Leases: []string{"moorage-controller", "moorage-scheduler"}, WebhookConfiguration: "moorage-webhook",
		URL: "https://moorage-webhook.moorage-system.svc/mutate/pod", Timeout: 2 * time.Minute,
	}
	command := &cobra.Command{
		Use:   "check",
		Short: "Look whether an installed Moorage works",
		Long: `check waits until somebody leads each component that elects a leader, and until
the webhook stamps a pod with a volume, with a certificate that the API server
trusts. The chart runs it for helm test.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			client, err := connect.Kube(config.Kubeconfig, clientName)
			if err != nil {
				return err
			}
			return Run(command.Context(), client, config, command.OutOrStdout())
		},
	}
	flags := command.Flags()
	flags.StringVar(&config.Kubeconfig, "kubeconfig", config.Kubeconfig, "kubeconfig file; without one, the service account of the pod it runs in")
	flags.StringVar(&config.Namespace, "namespace", config.Namespace, "namespace of the Leases")
	flags.StringSliceVar(&config.Leases, "leases", config.Leases, "Leases that somebody must renew")
	flags.StringVar(&config.WebhookConfiguration, "webhook-configuration", config.WebhookConfiguration, "MutatingWebhookConfiguration that says whom the API server trusts")
	flags.StringVar(&config.URL, "webhook-url", config.URL, "where the webhook answers")
	flags.DurationVar(&config.Timeout, "timeout", config.Timeout, "how long to wait for what does not work yet")
	return command
}
