// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

// NewPlanCommand makes kubectl moorage drain-plan.
func NewPlanCommand(b *command.Base) *cobra.Command {
	output := screen.NewOutput(false)
	var watch bool
	cmd := &cobra.Command{
		Use: "drain-plan NODE", Short: "Say which pods of a node would wait for volumes, and why",
		Long: "Say whether the volumes of a node's pods can go elsewhere, and which pod would wait and why. Nothing is changed.\n\n" +
			"A pod that no controller makes again would end, and needs no room elsewhere; drain evicts it with --force only.\n\n" +
			"Volumes, node selectors and affinity, and taints are looked at; CPU, memory, pod affinity and disruption budgets are not.\n\n" +
			"Exit code: 0 when every pod's volumes can go elsewhere, 2 when a pod would wait or needs --force, a ticket or a volume stays, the node is not ready, a component is down, or it is not known, 1 when nothing could be said.",
		Example: "  # May I drain this node?\n  kubectl moorage drain-plan worker-1 &&\n  kubectl drain worker-1 --ignore-daemonsets\n\n" +
			"  # Wait until it may be drained\n  kubectl moorage drain-plan worker-1 --watch &&\n  kubectl drain worker-1 --ignore-daemonsets",
		Args: command.One("node", "kubectl moorage drain-plan NODE"), ValidArgsFunction: b.Complete(command.Names("nodes")),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.Validate(); err != nil {
				return err
			}
			p := &planner{base: b, output: output, node: nodeNamed(args[0])}
			if watch {
				return p.follow(cmd.Context())
			}
			_, w, err := b.Read(cmd.Context())
			if err != nil {
				return err
			}
			return p.plan(w, b.Streams.Out)
		},
	}
	output.AddFlags(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "Print the plan again whenever it changes, until nothing stands in the way")
	return cmd
}

func nodeNamed(arg string) string {
	for _, kind := range []string{"node/", "nodes/", "no/"} {
		arg = strings.TrimPrefix(arg, kind)
	}
	return arg
}

// noNode is the error for a Node that does not exist. Where volumes may be at its machine it names them.
func noNode(w *facts.World, name string) error {
	err := command.Missing(w.Unseen, "nodes", "", name)
	if gone := (*command.NotFoundError)(nil); errors.As(err, &gone) {
		gone.Message = cmp.Or(w.NodeGone(name), gone.Message)
	}
	return err
}

type planner struct {
	base   *command.Base
	output *screen.Output
	node   string
}

// plan prints the present plan of a cluster. The error has the exit code.
func (p *planner) plan(w *facts.World, out io.Writer) error {
	if w.Node(p.node) == nil {
		return noNode(w, p.node)
	}
	plan := w.DrainPlan(p.node)
	var err error
	if p.output.Structured() {
		err = p.output.Print(out, p.base.Style(), "DrainPlan", plan)
	} else {
		err = screen.DrainPlan(out, p.base.Style(), plan, w.Now, p.output.Wide())
	}
	if err == nil && !plan.Empties() {
		err = &command.ExitError{Code: command.ExitFindings}
	}
	return err
}

var errDone = errors.New("nothing stands in the way")

// follow prints the plan whenever it changes, until no pod would wait.
func (p *planner) follow(ctx context.Context) error {
	c, err := p.base.Connect()
	if err != nil {
		return err
	}
	last := ""
	err = c.Follow(ctx, func(w *facts.World) error {
		var text bytes.Buffer
		ended := p.plan(w, &text)
		if findings := (*command.ExitError)(nil); ended != nil && !errors.As(ended, &findings) {
			return ended
		}
		if text.String() != last {
			last = text.String()
			if _, err := p.base.Streams.Out.Write(text.Bytes()); err != nil {
				return err
			}
		}
		if ended == nil {
			return errDone
		}
		return nil
	})
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}
