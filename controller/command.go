// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/internal/access"
	"github.com/moorage-dev/moorage/internal/connect"
)

// NewCommand returns the controller's command line. It works until its context is done or its lease is
// lost.
func NewCommand() *cobra.Command {
	config := DefaultConfig()
	command := &cobra.Command{
		Use:   "controller",
		Short: "Attach and detach volumes",
		Long: `The controller detaches volumes from where nobody wants them any more,
attaches them to where they are wanted, publishes on each pod which of its
volumes may be mounted, and ends volume tickets.

In Standalone mode it does all of kube-controller-manager's attach/detach
controller's job, which must be off:
  kube-controller-manager --controllers=*,-persistentvolume-attach-detach-controller

In Cooperative mode that controller stays. This one attaches for granted
tickets, and leaves volumesAttached and the detach of what pods used to
the other.`,
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
	flags.StringVar(&config.Mode, "mode", config.Mode, "standalone: do all attaching and detaching; cooperative: work beside kube-controller-manager's attach/detach controller, which detaches, unless standalone was not handed over")
	flags.BoolVar(&config.StayAttached, "stay-attached", config.StayAttached, "a volume whose detach is refused and that is wanted again at its node stays there, if its attacher can leave it (moorage-attacher)")
	flags.BoolVar(&config.NoForceOnTimeout, "disable-force-detach-on-timeout", config.NoForceOnTimeout, "detach no volume, of whatever driver, by force six minutes after the last pod of a node that is not ready is gone; an AttachPolicy with a time of its own counts more")
	flags.BoolVar(&config.RequireNodeReport, "require-node-report", config.RequireNodeReport, "in mode standalone, a volume leaves a node only after moorage-node has looked there and found nothing of it, but by force; only where moorage-node runs on all nodes")
	flags.BoolVar(&config.NetworkFences, "network-fences", config.NetworkFences, "in mode standalone, have the storage of drivers whose AttachPolicy has forceDetach.networkFence cut off nodes that can't be reached, by NetworkFences of csi-addons")
	flags.BoolVar(&config.OperationTickets, "operation-tickets", config.OperationTickets, "make tickets by which volumes are attached, or detached, for the snapshots, clones and expansions that an AttachPolicy names in attachFor and detachFor")
	flags.BoolVar(&config.DisableTruthCheck, "disable-truth-check", config.DisableTruthCheck, "do not compare what nodes, VolumeAttachments, VolumeHolds, tickets and pods say of each volume")
	flags.DurationVar(&config.TruthCheckPeriod, "truth-check-period", config.TruthCheckPeriod, "time between two comparisons of all volumes")
	flags.StringVar(&config.Listen, "listen", config.Listen, "host:port for /healthz, /readyz and /metrics; none when empty")
	flags.BoolVar(&config.SecureMetrics, "secure-metrics", config.SecureMetrics, access.SecureMetricsHelp)
	flags.Float32Var(&config.QPS, "kube-api-qps", config.QPS, "requests per second to the API server")
	flags.IntVar(&config.Burst, "kube-api-burst", config.Burst, "requests to the API server in a burst")
	flags.IntVar(&config.Workers, "workers", config.Workers, "volumes, nodes and pods that are worked on at once")
	flags.DurationVar(&config.WriteTimeout, "write-timeout", config.WriteTimeout, "longest time that one write may take")
	flags.DurationVar(&config.LeaseDuration, "leader-elect-lease-duration", config.LeaseDuration, "time after which a leader that is not heard of is replaced")
	flags.DurationVar(&config.RenewDeadline, "leader-elect-renew-deadline", config.RenewDeadline, "time after which a leader that can't renew its lease gives up")
	flags.DurationVar(&config.RetryPeriod, "leader-elect-retry-period", config.RetryPeriod, "time between attempts to get or renew the lease")
	flags.BoolVar(&config.SkipPolicyCheck, "skip-policy-check", config.SkipPolicyCheck, "start without the ValidatingAdmissionPolicy that keeps others from writing volumesAttached; for development only")
	return command
}
