// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

var errNotInstalled = errors.New("Moorage is not installed in this cluster, and its controller attaches: docs/operate/quickstart.md")

// attachOptions are attach's flags.
type attachOptions struct {
	options
	ttl          time.Duration
	ownNamespace string
}

// NewAttachCommand makes kubectl moorage attach.
func NewAttachCommand(b *command.Base) *cobra.Command {
	o := &attachOptions{options: options{base: b}}
	cmd := &cobra.Command{
		Use: "attach (PV | pvc/NAME) --node NODE", Short: "Attach a volume to a node by hand, with a ticket that ends by itself",
		Example: "  # Look into a volume for ten minutes\n  kubectl moorage attach pv-db --node worker-1 --ttl 10m\n\n  # The volume of a claim\n  kubectl moorage attach pvc/data-db-0 -n shop --node worker-1",
		Long: "Attach a volume to a node by hand, such as for a repair or a copy. It makes a VolumeTicket of type Manual, which ends after --ttl, or with kubectl moorage detach.\n\n" +
			"A volume that is in use elsewhere is refused, and the command says who uses it: nobody loses a volume.\n\n" +
			"Who may read claims and no PersistentVolumes names pvc/NAME. What is in the way can't be seen then, and the ticket waits for it.\n\n" +
			"Exit code: 0 when it is attached, 2 when it is refused, 1 when something failed.",
		Args: command.One("volume", "kubectl moorage attach (PV | pvc/NAME) --node NODE"), ValidArgsFunction: b.Complete(command.VolumeNames),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.add(cmd)
	cmd.Flags().DurationVar(&o.ttl, "ttl", time.Hour, "After how long the controller ends the ticket")
	cmd.Flags().StringVar(&o.ownNamespace, "moorage-namespace", facts.DefaultHome, "Moorage's own namespace, where the ticket of a volume without a claim is made")
	return cmd
}

func (o *attachOptions) run(ctx context.Context, name string) error {
	if err := o.validate(); err != nil {
		return err
	}
	if err := command.CheckTTL(o.ttl); err != nil {
		return err
	}
	c, w, err := o.base.Read(ctx)
	if err != nil {
		return err
	}
	if !w.Served() {
		return errNotInstalled
	}
	pv, unread, err := o.volume(w, c.Namespace, name)
	if err != nil {
		return err
	}
	ticket, err := o.ticketFor(w, pv, unread)
	if err != nil {
		return err
	}
	_, exists := w.TicketNow(ticket.Namespace, ticket.Name)
	switch {
	case exists:
	case unread != nil || w.Node(o.node) == nil:
		if err := o.base.Say(o.base.Streams.ErrOut, "Warning: what is in the way of it can't be seen without the right to list PersistentVolumes and nodes: if anything is, or there is no such node, the ticket waits."); err != nil {
			return err
		}
	default:
		if reasons := w.Refuses(ticket); len(reasons) > 0 {
			return o.refusal("%s can't be attached to %s: %s", pv, o.node, worded(reasons))
		}
	}
	created, err := o.create(ctx, c, ticket)
	if err != nil || o.dryRun != dryRunNone || !o.wait {
		return err
	}
	leaves, err := o.await(ctx, c, ticket.Namespace, ticket.Name)
	if err != nil {
		return err
	}
	return o.say("%s is attached to %s%s; kubectl moorage detach %s --node %s ends it sooner%s", pv, o.node, o.lasts(ctx, c, ticket, created, o.ttl), named(pv, unread), o.node, leaves)
}

// ticketFor is the ticket that asks for a volume: by its claim where the PersistentVolume can't be read.
func (o *attachOptions) ticketFor(w *facts.World, pv string, unread *corev1.PersistentVolumeClaim) (*v1alpha1.VolumeTicket, error) {
	ttl := int64(o.ttl / time.Second)
	if unread != nil {
		return facts.ManualTicketOf(unread, o.node, ttl), nil
	}
	return w.ManualTicket(pv, o.node, o.ownNamespace, ttl)
}

// named is how detach is told which volume: by its claim where the PersistentVolume can't be read.
func named(pv string, unread *corev1.PersistentVolumeClaim) string {
	if unread != nil {
		return fmt.Sprintf("pvc/%s -n %s", unread.Name, unread.Namespace)
	}
	return pv
}

// lasts is for how long a ticket has its volumes: one that was there already has what is left of its
// own time, whatever was asked for now.
func (o *options) lasts(ctx context.Context, c *cluster.Cluster, asked *v1alpha1.VolumeTicket, created bool, ttl time.Duration) string {
	if created {
		return fmt.Sprintf(" for %s", ttl)
	}
	renew := fmt.Sprintf("unless it is renewed: kubectl moorage ticket renew %s -n %s", asked.Name, asked.Namespace)
	t, err := c.Moorage.VolumeTickets(asked.Namespace).Get(ctx, asked.Name, metav1.GetOptions{})
	if err != nil {
		return " by a ticket that was there already, and ends when its own time is over, " + renew
	}
	if left := facts.TimeLeft(t, c.Clock()); left != "" {
		return fmt.Sprintf(" by a ticket that was there already, and ends %s, %s", left, renew)
	}
	return " by a ticket that was there already"
}

// create writes the ticket, and says whether it was not there yet. One that is there already
// is the same request.
func (o *options) create(ctx context.Context, c *cluster.Cluster, ticket *v1alpha1.VolumeTicket) (created bool, err error) {
	created, verb := true, "created"
	if o.dryRun != dryRunClient {
		_, err := c.Moorage.VolumeTickets(ticket.Namespace).Create(ctx, ticket, metav1.CreateOptions{DryRun: o.serverDryRun()})
		switch {
		case apierrors.IsAlreadyExists(err):
			created, verb = false, "unchanged"
		case err != nil:
			return false, command.Failed("create the ticket", "create volumetickets.moorage.dev -n "+ticket.Namespace, err)
		}
	}
	return created, o.say("volumeticket.moorage.dev/%s %s in namespace %s%s", ticket.Name, verb, ticket.Namespace, o.suffix())
}

// await waits until the controller has granted a ticket and its volumes are attached. leaves is what takes them
// away before the ticket ends, to be said after the rest; empty where nothing is known to.
func (o *options) await(ctx context.Context, c *cluster.Cluster, namespace, name string) (leaves string, err error) {
	err = o.until(ctx, c, func(w *facts.World) (bool, string, error) {
		t, ok := w.TicketNow(namespace, name)
		hidden := command.UnreadTicket(w, namespace, name)
		switch {
		case !ok && hidden != nil:
			return false, "", fmt.Errorf("the ticket asks for its volumes, and whether it has them is not known: %w", hidden)
		case !ok:
			return false, "the ticket to be seen", nil
		case t.State == facts.TicketSatisfied:
			if leaves = w.LeavesWithPods(&t); leaves != "" {
				leaves = ". But " + leaves
			}
			return true, "", nil
		case len(t.Reasons) > 0:
			return false, worded(t.Reasons), nil
		}
		return false, "moorage-controller to decide", nil
	})
	return leaves, err
}

func worded(reasons []facts.Reason) string {
	var list []string
	for _, r := range reasons {
		list = append(list, r.Code+": "+r.Message)
	}
	return strings.Join(list, "; ")
}
