// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

// NewPlanCommand makes kubectl moorage drain-plan.
func NewPlanCommand(b *command.Base) *cobra.Command {
	output := screen.NewOutput(false)
	cmd := &cobra.Command{
		Use: "drain-plan NODE", Short: "Say which pods of a node would wait for volumes, and why",
		Long: "Say whether the volumes of a node's pods can go elsewhere, and which pod would wait and why. Nothing is changed.\n\n" +
			"A pod that no controller makes again would end, and needs no room elsewhere; drain evicts it with --force only.\n\n" +
			"Volumes, node selectors and affinity, and taints are looked at; CPU, memory, pod affinity and disruption budgets are not.\n\n" +
			"Exit code: 0 when every pod's volumes can go elsewhere, 2 when a pod would wait or needs --force, a ticket or a volume stays, the node is not ready, a component is down, or it is not known, 1 when nothing could be said.",
		Example: "  # May I drain this node?\n  kubectl moorage drain-plan worker-1 &&\n  kubectl drain worker-1 --ignore-daemonsets",
		Args:    command.One("node", "kubectl moorage drain-plan NODE"), ValidArgsFunction: b.Complete(command.Names("nodes")),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.Validate(); err != nil {
				return err
			}
			_, w, err := b.Read(cmd.Context())
			if err != nil {
				return err
			}
			node := nodeNamed(args[0])
			if w.Node(node) == nil {
				return noNode(w, node)
			}
			plan := w.DrainPlan(node)
			if output.Structured() {
				err = output.Print(b.Streams.Out, b.Style(), "DrainPlan", plan)
			} else {
				err = screen.DrainPlan(b.Streams.Out, b.Style(), plan, w.Now, output.Wide())
			}
			if err == nil && !plan.Empties() {
				err = &command.ExitError{Code: command.ExitFindings}
			}
			return err
		},
	}
	output.AddFlags(cmd)
	return cmd
}

func nodeNamed(arg string) string {
	for _, kind := range []string{"node/", "nodes/", "no/"} {
		arg = strings.TrimPrefix(arg, kind)
	}
	return arg
}

// noNode also names volumes that may be at the missing Node's machine.
func noNode(w *facts.World, name string) error {
	err := command.Missing(w.Unseen, "nodes", "", name)
	if gone := (*command.NotFoundError)(nil); errors.As(err, &gone) {
		gone.Message = cmp.Or(w.NodeGone(name), gone.Message)
	}
	return err
}
