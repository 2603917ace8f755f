// SPDX-License-Identifier: Apache-2.0

// Package drain is kubectl moorage drain-plan: where the volumes of a node
// could go, before it is drained.
//
// Reads: everything the ledger is made of. Decides: nothing. Writes: nothing.
package drain

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

// NewCommand makes the command.
func NewCommand(b *command.Base) *cobra.Command {
	output := screen.NewOutput(false)
	cmd := &cobra.Command{
		Use: "drain-plan NODE", Short: "Say whether a node's volumes can go elsewhere, and which pod would wait and why",
		Long: "Say whether the volumes of a node's pods can go elsewhere, and which pod would wait and why. Nothing is changed.\n\n" +
			"Volumes, node selectors and affinity, and taints are looked at; CPU, memory, pod affinity and disruption budgets are not.\n\n" +
			"Exit code: 0 when every pod's volumes can go elsewhere, 2 when a pod would wait or the node is not ready, 1 when nothing could be said.",
		Example: "  # May I drain this node?\n  kubectl moorage drain-plan worker-1 && kubectl drain worker-1 --ignore-daemonsets",
		Args:    command.One("node", "kubectl moorage drain-plan NODE"), ValidArgsFunction: b.Complete(func(ctx context.Context, c *cluster.Cluster, args []string) []string {
			if len(args) > 0 {
				return nil
			}
			return command.NodeNames(ctx, c, nil)
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.Validate(); err != nil {
				return err
			}
			_, w, err := b.Read(cmd.Context())
			if err != nil {
				return err
			}
			if w.Node(args[0]) == nil {
				return command.Missing(w.Unseen, "nodes", "", args[0], command.ObjectNames(w.Nodes))
			}
			plan := w.DrainPlan(args[0])
			if output.Structured() {
				err = output.Print(b.Streams.Out, "DrainPlan", plan)
			} else {
				err = screen.DrainPlan(b.Streams.Out, b.Style(), plan, w.Now)
			}
			if err == nil && (plan.Waits > 0 || plan.Dead) {
				err = &command.ExitError{Code: command.ExitFindings}
			}
			return err
		},
	}
	output.AddFlags(cmd)
	return cmd
}
