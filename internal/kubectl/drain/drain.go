// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

// drainer is kubectl moorage drain with its flags.
type drainer struct {
	base    *command.Base
	node    string
	atOnce  int
	timeout time.Duration
	dryRun  bool
	may     permissions
	grace   int64  // seconds; negative: what each pod asks for
	only    string // selector of pods
}

// NewCommand makes kubectl moorage drain.
func NewCommand(b *command.Base) *cobra.Command {
	d := &drainer{base: b}
	cmd := &cobra.Command{
		Use: "drain NODE", Short: "Cordon a node, and evict its pods as their volumes find room elsewhere",
		Long: "Cordon a node, and evict its pods as their volumes find room elsewhere.\n\n" +
			"A pod whose volumes no other node can take stays and runs until one can. Of the others, no more than --at-once are between two nodes at a time, so that none waits long for the detaches of the rest. Disruption budgets are kept: pods are evicted, not deleted.\n\n" +
			"It ends when the pods have left and their volumes are unmounted there. It may be broken off and begun again at any time.\n\n" +
			"Exit code: 0 when the node is drained, 2 when pods stay until --timeout or the node is not ready, 1 when something failed.",
		Example: "  # Empty a node, as kubectl drain with the same flags\n  kubectl moorage drain worker-1 --ignore-daemonsets\n\n" +
			"  # What would it do?\n  kubectl moorage drain worker-1 --ignore-daemonsets --dry-run",
		Args: command.One("node", "kubectl moorage drain NODE"), ValidArgsFunction: b.Complete(nodeNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			d.node = args[0]
			return d.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.IntVar(&d.atOnce, "at-once", 10, "How many pods with volumes may be between two nodes")
	f.DurationVar(&d.timeout, "timeout", 0, "For how long to try; 0 is without end")
	f.BoolVar(&d.dryRun, "dry-run", false, "Say what would be done, and change nothing")
	f.BoolVar(&d.may.ignoreDaemonSets, "ignore-daemonsets", false, "Leave pods of DaemonSets where they are")
	f.BoolVar(&d.may.deleteEmptyDirData, "delete-emptydir-data", false, "Evict pods with emptyDir volumes, too, whose data is lost")
	f.BoolVar(&d.may.force, "force", false, "Evict pods that no controller makes again, too")
	f.Int64Var(&d.grace, "grace-period", -1, "Seconds that pods get to end; -1: what each asks for")
	f.StringVar(&d.only, "pod-selector", "", "Evict only pods with these labels")
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
	if w.Node(d.node) == nil {
		return command.Missing(w.Unseen, "nodes", "", d.node, command.ObjectNames(w.Nodes))
	}
	plan := w.DrainPlan(d.node)
	if len(plan.NotVisible) > 0 {
		return fmt.Errorf("where volumes have room can't be told without listing %s in all namespaces: kubectl auth can-i list %s -A", strings.Join(plan.NotVisible, ", "), plan.NotVisible[0])
	}
	pods, err := d.may.choose(w, d.node, selector)
	if err != nil {
		return err
	}
	if plan.Dead || d.dryRun {
		return d.show(plan, len(pods))
	}
	if err := cordon(ctx, c, w.Node(d.node)); err != nil {
		return err
	}
	d.say("node %s is cordoned", d.node)
	return d.evict(ctx, c, newMoves(d.node, d.atOnce, pods, d.say))
}

// cordon keeps new pods from that very node.
func cordon(ctx context.Context, c *cluster.Cluster, n *corev1.Node) error {
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"spec":{"unschedulable":true}}`, n.UID)
	if _, err := c.Kube.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("cordon node %s (kubectl auth can-i patch nodes): %w", n.Name, err)
	}
	return nil
}

// show says what a drain would do; of a node that is not ready it would do nothing.
func (d *drainer) show(plan facts.DrainPlan, pods int) error {
	if err := screen.DrainPlan(d.base.Streams.Out, d.base.Style(), plan, time.Time{}); err != nil {
		return err
	}
	if !plan.Dead {
		later := ""
		if plan.Waits > 0 {
			later = fmt.Sprintf(", %d of them only once other nodes have room for their volumes", plan.Waits)
		}
		d.say("dry run: it would evict %s%s", facts.Count(pods, "pod"), later)
	}
	if !plan.Clear() {
		return &command.ExitError{Code: command.ExitFindings}
	}
	return nil
}

// say prints a line. That nobody reads it any more is no reason to leave a drain half done.
func (d *drainer) say(format string, args ...any) {
	_ = d.base.Say(d.base.Streams.Out, format, args...)
}

// answer is what became of an eviction.
type answer struct {
	of      *departure
	refusal string // empty when it is evicted
}

// evict follows the cluster until the node is empty, and evicts what may go.
func (d *drainer) evict(ctx context.Context, c *cluster.Cluster, m *moves) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	worlds, ended := make(chan *facts.World), make(chan error, 1)
	go func() {
		ended <- c.Follow(ctx, func(w *facts.World) error {
			select {
			case worlds <- w:
			case <-ctx.Done():
			}
			return nil
		})
	}()
	answers := make(chan answer)
	again := time.NewTicker(retryAfter)
	defer again.Stop()
	var late <-chan time.Time
	if d.timeout > 0 {
		late = time.After(d.timeout)
	}
	var world *facts.World
	for {
		select {
		case err := <-ended:
			if err == nil {
				err = ctx.Err() // Ctrl-C
			}
			return err
		case <-late:
			return &command.ExitError{Code: command.ExitFindings, Message: fmt.Sprintf("timed out after %s. Still at the node: %s", d.timeout, m.remaining())}
		case world = <-worlds:
		case a := <-answers:
			m.answered(a.of, a.refusal, c.Clock())
		case <-again.C:
		}
		if world == nil {
			continue
		}
		world.Now = c.Clock()
		for _, one := range m.next(world) {
			one.asking = true
			go func() {
				refusal := d.evictPod(ctx, c, one.pod)
				select {
				case answers <- answer{one, refusal}:
				case <-ctx.Done():
				}
			}()
		}
		if m.left(world) {
			d.say("%s", m.summary())
			return nil
		}
	}
}

// evictionPatience is for how long the API server may take for an eviction: its webhooks are
// asked before.
const evictionPatience = 30 * time.Second

// evictPod asks for the eviction of that very pod. It returns why it was refused; a pod that
// is gone, or another one of its name, needs none.
func (d *drainer) evictPod(ctx context.Context, c *cluster.Cluster, p *corev1.Pod) (refusal string) {
	ctx, cancel := context.WithTimeout(ctx, evictionPatience)
	defer cancel()
	options := &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))}
	if d.grace >= 0 {
		options.GracePeriodSeconds = &d.grace
	}
	err := c.Kube.PolicyV1().Evictions(p.Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}, DeleteOptions: options,
	})
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return ""
	case apierrors.IsForbidden(err):
		return err.Error() + " (kubectl auth can-i create pods/eviction)"
	}
	return err.Error()
}
