// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/internal/access"
	"github.com/moorage-dev/moorage/internal/connect"
)

// NewCommand returns the command line of the extender. It serves until its
// context is done, or until it has lost its lease.
func NewCommand() *cobra.Command {
	config := DefaultConfig()
	command := &cobra.Command{
		Use:   "extender",
		Short: "Serve Moorage's scheduler extender",
		Long: `The extender answers kube-schedulers that can't load Moorage's plugin: with
filter, prioritize and preempt it keeps pods from nodes that their volumes can't
follow them to, and with bind it binds a pod and writes its reservation at once.

In the KubeSchedulerConfiguration (see docs/operate/extender.md):
  extenders:
  - urlPrefix: https://moorage-extender.moorage-system.svc
    filterVerb: filter
    prioritizeVerb: prioritize
    bindVerb: bind
    preemptVerb: preempt
    weight: 10
    enableHTTPS: true
    nodeCacheCapable: true
    tlsConfig: {caFile: …, certFile: …, keyFile: …}
and NodeVolumeLimits among the disabled plugins of the profiles.`,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			return Run(command.Context(), config)
		},
	}
	flags := command.Flags()
	connect.AddFlags(flags, &config.Kubeconfig)
	flags.StringVar(&config.Namespace, "namespace", config.Namespace, "namespace of the Lease")
	flags.StringVar(&config.Name, "name", config.Name, "name of the Lease")
	flags.StringVar(&config.Listen, "listen", config.Listen, "host:port for schedulers; without a host on every address")
	flags.StringVar(&config.HealthListen, "health-listen", config.HealthListen, "host:port for /healthz, /readyz and /metrics, without TLS unless --secure-metrics; none when empty")
	flags.BoolVar(&config.SecureMetrics, "secure-metrics", config.SecureMetrics, access.SecureMetricsHelp)
	flags.StringVar(&config.CertFile, "tls-cert-file", config.CertFile, "PEM file of the serving certificate, read again when it changes")
	flags.StringVar(&config.KeyFile, "tls-private-key-file", config.KeyFile, "PEM file of the serving certificate's key, read again when it changes")
	flags.StringVar(&config.ClientCAFile, "client-ca-file", config.ClientCAFile, "PEM file of the authorities that sign schedulers' certificates, read again when it changes")
	flags.StringSliceVar(&config.ClientNames, "client-names", config.ClientNames, "common or DNS names of schedulers' certificates; any when empty")
	flags.StringVar(&config.Service, "service", config.Service, "Service without a selector that the leader points at itself, so that others can be ready; when empty, only the leader is ready")
	flags.StringVar(&config.Advertise, "advertise-address", config.Advertise, "with --service: IP address at which schedulers reach this process, on the port of --listen")
	flags.Int64Var(&config.MaxBodyBytes, "max-request-bytes", config.MaxBodyBytes, "largest request that is taken; schedulers that send whole nodes need some 10 KiB for each")
	flags.Float32Var(&config.QPS, "kube-api-qps", config.QPS, "requests per second to the API server")
	flags.IntVar(&config.Burst, "kube-api-burst", config.Burst, "requests to the API server in a burst")
	flags.DurationVar(&config.WriteTimeout, "write-timeout", config.WriteTimeout, "longest time that one write may take")
	flags.DurationVar(&config.LeaseDuration, "leader-elect-lease-duration", config.LeaseDuration, "time after which a leader that is not heard of is replaced")
	flags.DurationVar(&config.RenewDeadline, "leader-elect-renew-deadline", config.RenewDeadline, "time after which a leader that can't renew its lease gives up")
	flags.DurationVar(&config.RetryPeriod, "leader-elect-retry-period", config.RetryPeriod, "time between attempts to get or renew the lease")
	flags.DurationVar(&config.ShutdownDelay, "shutdown-delay", config.ShutdownDelay, "time to go on serving after being told to stop, while reporting not ready")
	return command
}
