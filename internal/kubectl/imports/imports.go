// SPDX-License-Identifier: Apache-2.0

// Package imports is kubectl moorage import: VolumeTickets for the users of attached volumes before Moorage
// detaches.
//
// Package facts decides. Writes: VolumeTickets, with --apply.
package imports

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

type options struct {
	base  *command.Base
	apply bool
	ttl   time.Duration
}

// NewCommand makes kubectl moorage import.
func NewCommand(b *command.Base) *cobra.Command {
	o := &options{base: b}
	cmd := &cobra.Command{
		Use: "import", Short: "Make tickets for what has volumes before Moorage attaches",
		Example: "  # What is attached, and used by no pod?\n  kubectl moorage import\n\n  # Tickets for all of it, for a day\n  kubectl moorage import --ttl 24h --apply",
		Long: "Make tickets of type Manual for the volumes that are attached by a VolumeAttachment and that no pod and no ticket uses, such as those that somebody has attached by hand. " +
			"A controller in Standalone mode detaches what nobody asks for: with such a ticket the volume stays until its time is over, or until kubectl moorage ticket end.\n\n" +
			"Without --apply the tickets are printed, as manifests, and nothing is written. A ticket that exists already is left as it is.",
		Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.apply, "apply", false, "Write the tickets, and not only print them")
	f.DurationVar(&o.ttl, "ttl", 24*time.Hour, "After how long the controller ends each ticket, unless it is renewed")
	return cmd
}

func (o *options) run(ctx context.Context) error {
	if err := command.CheckTTL(o.ttl); err != nil {
		return err
	}
	c, w, err := o.base.Read(ctx)
	if err != nil {
		return err
	}
	if o.apply && !w.Served() {
		return errors.New("the cluster does not serve VolumeTickets: install Moorage in Cooperative mode, which detaches nothing of this, and switch to Standalone mode afterwards")
	}
	if err := seen(w); err != nil {
		return err
	}
	return o.each(ctx, c, w, w.UnusedAttachments(w.Home, int64(o.ttl/time.Second)))
}

// seen fails if pods or tickets are not listed: then the unused volumes are unknown.
func seen(w *facts.World) error {
	for _, u := range w.Unseen {
		switch {
		case u.Missing:
		case slices.Contains([]string{"pods", "volumetickets.moorage.dev", "volumeattachments.storage.k8s.io", "persistentvolumes", "persistentvolumeclaims"}, u.Resource):
			return fmt.Errorf("you may not list all %s, and what is not seen can't be told from what is not there: %s", u.Resource, u.Message)
		}
	}
	return nil
}

func (o *options) each(ctx context.Context, c *cluster.Cluster, w *facts.World, list []facts.Import) error {
	made, failed := 0, 0
	for _, i := range list {
		if i.Note != "" {
			if err := o.base.Say(o.base.Streams.ErrOut, "%s: %s", i.From, i.Note); err != nil {
				return err
			}
		}
		if i.Ticket == nil {
			continue
		}
		is, err := o.one(ctx, c, w, i)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			failed++
			if err := o.base.Say(o.base.Streams.ErrOut, "error: %s: %s", i.From, err); err != nil {
				return err
			}
		case is:
			made++
		}
	}
	then := "to be made; --apply makes them"
	if o.apply {
		then = "made"
	}
	if err := o.base.Say(o.base.Streams.ErrOut, "%s %s.", facts.Count(made, "ticket"), then); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%s failed, each with its error above; the same command tries them again", facts.Count(failed, "ticket"))
	}
	return nil
}

// one says whether the ticket is new.
func (o *options) one(ctx context.Context, c *cluster.Cluster, w *facts.World, i facts.Import) (bool, error) {
	if !o.apply {
		_, exists := w.TicketNow(i.Ticket.Namespace, i.Ticket.Name)
		return !exists, printed(o.base.Streams.Out, i)
	}
	verb := "created"
	_, err := c.Moorage.VolumeTickets(i.Ticket.Namespace).Create(ctx, i.Ticket, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		verb = "unchanged"
	case err != nil:
		return false, command.Failed("create the ticket "+i.Ticket.Name, "create volumetickets.moorage.dev -n "+i.Ticket.Namespace, err)
	}
	// A line of any length for each: scripts read them.
	_, err = fmt.Fprintf(o.base.Streams.Out, "volumeticket.moorage.dev/%s %s in namespace %s\n", i.Ticket.Name, verb, i.Ticket.Namespace)
	return verb == "created", err
}

func printed(out io.Writer, i facts.Import) error {
	manifest := map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": v1alpha1.KindVolumeTicket,
		"metadata": map[string]any{"namespace": i.Ticket.Namespace, "name": i.Ticket.Name},
		"spec":     i.Ticket.Spec,
	}
	text, err := yaml.Marshal(manifest)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "---\n# %s\n%s", i.From, text)
	return err
}
