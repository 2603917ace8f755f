// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

// The values of --dry-run, as kubectl's.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// nodeNamed is the node that an argument names, which may have its kind before it.
func nodeNamed(arg string) string {
	for _, kind := range []string{"node/", "nodes/", "no/"} {
		arg = strings.TrimPrefix(arg, kind)
	}
	return arg
}

// drainer is kubectl moorage drain with its flags.
type drainer struct {
	base    *command.Base
	node    string
	atOnce  int
	timeout time.Duration
	dryRun  string
	may     permissions
	grace   int64  // seconds; negative: what each pod asks for
	only    string // selector of pods
	output  string // empty or wide
}

// wide says whether each pod is to be told of by itself, however many there are.
func (d *drainer) wide() bool { return d.output == "wide" }

// NewCommand makes kubectl moorage drain.
func NewCommand(b *command.Base) *cobra.Command {
	d := &drainer{base: b}
	cmd := &cobra.Command{
		Use: "drain NODE", Short: "Cordon a node, and evict its pods as their volumes find room elsewhere",
		Long: "Cordon a node, and evict its pods as their volumes find room elsewhere.\n\n" +
			"A pod whose volumes no other node can take keeps running until one can. At most --at-once of the others are between two nodes at a time, so that none waits long for the detaches of the rest. Pods are evicted, not deleted, so disruption budgets hold.\n\n" +
			"It ends when the pods have left and nothing is mounted there except volumes of pods that stay on purpose. It also waits for volumes that only a VolumeTicket keeps there, since no kubelet knows what uses them; --ignore-tickets does not. You may interrupt it and start it again at any time.\n\n" +
			"Exit code: 0 when the node is drained, 2 when pods or volumes stay until --timeout, when pods were made there after the cordon, or when the node is not ready, 130 when it was interrupted, 1 when something failed. With --dry-run: 0 when all pods could go at once, else 2.",
		Example: "  # Empty a node, as kubectl drain with the same flags\n  kubectl moorage drain worker-1 --ignore-daemonsets\n\n" +
			"  # What would it do?\n  kubectl moorage drain worker-1 --ignore-daemonsets --dry-run",
		Args: command.One("node", "kubectl moorage drain NODE"), ValidArgsFunction: b.Complete(nodeNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			d.node = nodeNamed(args[0])
			return d.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.IntVar(&d.atOnce, "at-once", 10, "How many pods with volumes may be between two nodes")
	f.DurationVar(&d.timeout, "timeout", 0, "For how long to try; 0 is without end")
	f.StringVar(&d.dryRun, "dry-run", dryRunNone, "client or server: say what would be done, and change nothing; server also asks disruption budgets")
	f.Lookup("dry-run").NoOptDefVal = dryRunClient
	f.BoolVar(&d.may.ignoreDaemonSets, "ignore-daemonsets", false, "Leave pods of DaemonSets where they are")
	f.BoolVar(&d.may.ignoreTickets, "ignore-tickets", false, "Leave volumes there that only VolumeTickets keep")
	f.BoolVar(&d.may.deleteEmptyDirData, "delete-emptydir-data", false, "Evict pods with emptyDir volumes, too, whose data is lost")
	f.BoolVar(&d.may.force, "force", false, "Evict pods that no controller makes again, too")
	f.Int64Var(&d.grace, "grace-period", -1, "Seconds that pods get to end; -1: what each asks for")
	f.StringVar(&d.only, "pod-selector", "", "Evict only pods with these labels")
	f.StringVarP(&d.output, "output", "o", "", "wide: name every pod, however many there are")
	return cmd
}

func nodeNames(ctx context.Context, c *cluster.Cluster, args []string) []string {
	if len(args) > 0 {
		return nil
	}
	return command.NodeNames(ctx, c, nil)
}

func (d *drainer) run(ctx context.Context) error {
	if d.atOnce < 1 {
		return fmt.Errorf("--at-once %d: must be 1 or more", d.atOnce)
	}
	if !slices.Contains([]string{dryRunNone, dryRunClient, dryRunServer}, d.dryRun) {
		return fmt.Errorf("--dry-run %s: must be none, client or server", d.dryRun)
	}
	if d.output != "" && !d.wide() {
		return fmt.Errorf("--output %s: must be wide, or be left out", d.output)
	}
	if d.timeout < 0 {
		return fmt.Errorf("--timeout %s: must not be negative; 0 is without end", d.timeout)
	}
	if d.base.Flags.Bundle != "" {
		return errors.New("drain changes a cluster, and a bundle is read only: drain-plan answers from it")
	}
	selector, err := labels.Parse(d.only)
	if err != nil {
		return fmt.Errorf("--pod-selector: %w", err)
	}
	c, w, err := d.base.Read(ctx)
	if err != nil {
		return err
	}
	n := w.Node(d.node)
	if n == nil {
		return noNode(w, d.node)
	}
	t := task{node: d.node, uid: n.UID, atOnce: d.atOnce, may: d.may, wide: d.wide(), selector: selector, began: c.Clock(), orphans: orphans(ctx, c, w.Pods, d.node)}
	plan := w.DrainPlanOf(d.node, func(p *corev1.Pod) bool {
		return selector.Matches(labels.Set(p.Labels)) && (!d.may.force || !facts.MadeAgain(p) || !w.OnlyHere(p, d.node))
	})
	if len(plan.NotVisible) > 0 {
		return fmt.Errorf("where volumes have room is not known without listing %s in all namespaces: kubectl auth can-i list %s -A", strings.Join(plan.NotVisible, ", "), plan.NotVisible[0])
	}
	choice := t.choose(w)
	if err := choice.refused(d.node, ", and nothing was changed"); err != nil {
		return err
	}
	d.tellWhoIsLeft(&choice, len(choice.leave))
	if plan.Dead || d.dryRun != dryRunNone {
		err := d.show(plan, w.Now, t.counted(choice.leave))
		if d.dryRun == dryRunServer && !plan.Dead && !d.tryEvictions(ctx, c, choice.leave) {
			return &command.ExitError{Code: command.ExitFindings}
		}
		return err
	}
	if err := mayDo(ctx, c, d.node, choice.leave); err != nil {
		return err
	}
	if err := cordon(ctx, c, n); err != nil {
		return err
	}
	d.say("node %s is cordoned", d.node)
	return d.follow(ctx, c, newMoves(t, d.say))
}

// noNode is the error for a Node that does not exist. Where volumes may be at its machine no
// other one's name is offered.
func noNode(w *facts.World, name string) error {
	err := command.Missing(w.Unseen, "nodes", "", name)
	if gone := (*command.NotFoundError)(nil); errors.As(err, &gone) {
		gone.Message = cmp.Or(w.NodeGone(name), gone.Message)
	}
	return err
}

// tellWhoIsLeft says which pods stay on purpose, and that a selector selects none.
func (d *drainer) tellWhoIsLeft(c *choice, leave int) {
	if leave == 0 && d.only != "" {
		d.say("no pod there has the labels of --pod-selector %s", d.only)
	}
	if stay := c.stay(); stay != "" {
		d.say("left where they are: %s", stay)
	}
}

// show says what a drain would do; of a node that is not ready it would do nothing.
func (d *drainer) show(plan facts.DrainPlan, now time.Time, pods string) error {
	if err := screen.DrainPlan(d.base.Streams.Out, d.base.Style(), plan, now, d.wide()); err != nil {
		return err
	}
	if plan.Dead {
		d.say("It is not drained, and nothing was changed.")
	} else {
		later := ""
		if plan.Waits > 0 {
			later = fmt.Sprintf(", %d of them only once other nodes have room for their volumes", plan.Waits)
		}
		d.say("dry run: it would evict %s%s", pods, later)
	}
	if !plan.Clear() {
		return &command.ExitError{Code: command.ExitFindings}
	}
	return nil
}

// tryEvictions asks the API server to evict each pod as a dry run, and tells which evictions it
// refuses: disruption budgets and admission are asked, and nothing is changed. It says whether
// none is refused.
func (d *drainer) tryEvictions(ctx context.Context, c *cluster.Cluster, pods []*corev1.Pod) bool {
	refused := 0
	for _, p := range pods {
		if p.DeletionTimestamp != nil {
			continue
		}
		if answer := d.evictPod(ctx, c, p); answer.refusal.why != "" {
			refused++
			d.say("%s would not be evicted now: %s", nameOf(p), answer.refusal.why)
		}
	}
	if refused == 0 {
		d.say("the API server would agree now to each of these evictions, taken by itself")
	}
	return refused == 0
}

// say prints a line. That nobody reads it any more is no reason to leave a drain half done.
func (d *drainer) say(format string, args ...any) {
	_ = d.base.Say(d.base.Streams.Out, format, args...)
}
