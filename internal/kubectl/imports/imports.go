// SPDX-License-Identifier: Apache-2.0

// Package imports is kubectl moorage import: it makes VolumeTickets for the users of volumes at nodes
// before Moorage attaches and detaches there.
//
// Reads: the cluster, and Longhorn's VolumeAttachments. Decides: nothing; package facts decides on the
// tickets. Writes: VolumeTickets, with --apply.
package imports

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

type options struct {
	base       *command.Base
	apply      bool
	ttl        time.Duration
	driver     string
	longhornAt string
}

// NewCommand makes kubectl moorage import.
func NewCommand(b *command.Base) *cobra.Command {
	cmd := &cobra.Command{
		Use: "import", Short: "Make tickets for what has volumes before Moorage attaches",
		Example: "  # What is attached, and used by no pod?\n  kubectl moorage import attachments\n\n  # Tickets for all of it, for a day\n  kubectl moorage import attachments --ttl 24h --apply\n\n" +
			"  # What Longhorn's own tickets ask for\n  kubectl moorage import longhorn",
		Long: "Make tickets for what has volumes at nodes before Moorage attaches and detaches there (Standalone mode), so that it detaches nothing of that when it begins.\n\n" +
			"Without --apply the tickets are printed, as manifests, and nothing is written. A ticket that exists already is left as it is.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAttachments(b), newLonghorn(b))
	return cmd
}

func newAttachments(b *command.Base) *cobra.Command {
	o := &options{base: b}
	cmd := &cobra.Command{
		Use: "attachments", Short: "Make tickets for attached volumes that no pod and no ticket uses",
		Example: "  # Print them\n  kubectl moorage import attachments\n\n  # Write them\n  kubectl moorage import attachments --ttl 24h --apply",
		Long: "Make tickets of type Manual for the volumes that are attached by a VolumeAttachment and that no pod and no ticket uses, such as those that somebody has attached by hand. " +
			"A controller in Standalone mode detaches what nobody asks for: with such a ticket the volume stays until its time is over, or until kubectl moorage detach.",
		Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), func(_ context.Context, _ *cluster.Cluster, w *facts.World) ([]facts.Import, error) {
				list := w.UnusedAttachments(w.Home, int64(o.ttl/time.Second))
				if len(list) > 0 && w.DetachesUnused() {
					return list, o.base.Say(o.base.Streams.ErrOut, detaches)
				}
				return list, nil
			})
		},
	}
	o.add(cmd)
	return cmd
}

// detaches is the warning where a leading controller already detaches unused volumes.
const detaches = "moorage-controller attaches and detaches in this cluster already (Standalone mode): an attached volume that nobody uses may be on its way off, and a ticket keeps it. To keep a single one: `kubectl moorage attach PV --node NODE`"

func newLonghorn(b *command.Base) *cobra.Command {
	o := &options{base: b}
	cmd := &cobra.Command{
		Use: "longhorn", Short: "Make tickets of the types that Longhorn's own attachment tickets have",
		Example: "  # Print them\n  kubectl moorage import longhorn\n\n  # Write them\n  kubectl moorage import longhorn --ttl 24h --apply",
		Long: "Read the attachment tickets of Longhorn's VolumeAttachments (longhorn.io/v1beta2) in Longhorn's own namespace, and make a VolumeTicket of the matching type for each. " +
			"Tickets of type csi-attacher are left out: they are Longhorn's word for what Kubernetes attaches, and pods ask for that themselves.\n\n" +
			"Longhorn's tickets are not changed. End them in Longhorn where the VolumeTicket takes their place.",
		Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wrong := validation.IsDNS1123Label(o.longhornAt); len(wrong) > 0 {
				return fmt.Errorf("--longhorn-namespace %q is no name of a namespace: %s", o.longhornAt, wrong[0])
			}
			return o.run(cmd.Context(), o.findLonghorn)
		},
	}
	o.add(cmd)
	cmd.Flags().StringVar(&o.longhornAt, "longhorn-namespace", "longhorn-system", "Longhorn's own namespace. Its kind in any other is not read: Longhorn does not read it there either")
	cmd.Flags().StringVar(&o.driver, "driver", "driver.longhorn.io", "The CSI driver of Longhorn's volumes")
	return cmd
}

func (o *options) findLonghorn(ctx context.Context, c *cluster.Cluster, w *facts.World) ([]facts.Import, error) {
	tickets, err := readLonghorn(ctx, c.Kube, o.longhornAt)
	if err != nil {
		return nil, err
	}
	if len(tickets) == 0 {
		if err := o.base.Say(o.base.Streams.ErrOut, "Longhorn has no attachment tickets in namespace %s. --longhorn-namespace names the one in which it runs.", o.longhornAt); err != nil {
			return nil, err
		}
	}
	return w.LonghornImports(tickets, o.driver, w.Home, int64(o.ttl/time.Second)), nil
}

func (o *options) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.apply, "apply", false, "Write the tickets, and not only print them")
	f.DurationVar(&o.ttl, "ttl", 24*time.Hour, "After how long the controller ends each ticket, unless it is renewed")
}

func (o *options) run(ctx context.Context, find func(context.Context, *cluster.Cluster, *facts.World) ([]facts.Import, error)) error {
	if err := command.CheckTTL(o.ttl); err != nil {
		return err
	}
	if o.apply && o.base.Flags.Bundle != "" {
		return errors.New("--bundle: a bundle is read only: leave --apply out")
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
	list, err := find(ctx, c, w)
	if err != nil {
		return err
	}
	return o.each(ctx, c, w, list)
}

// seen fails where pods or tickets may not be listed: the unused volumes are then unknown.
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

// one prints or writes a ticket, and says whether it is new.
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
	// A line for each, at any length: scripts read them.
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

// attachments are Longhorn's VolumeAttachments.
type attachments struct {
	Items []struct {
		Spec struct {
			Volume  string `json:"volume"`
			Tickets map[string]struct {
				Type       string            `json:"type"`
				NodeID     string            `json:"nodeID"`
				Parameters map[string]string `json:"parameters"`
			} `json:"attachmentTickets"`
		} `json:"spec"`
	} `json:"items"`
}

// readLonghorn reads the attachment tickets in Longhorn's namespace. Longhorn reads its kind in no other
// namespace: there any user could write it.
func readLonghorn(ctx context.Context, kube kubernetes.Interface, namespace string) ([]facts.LonghornTicket, error) {
	raw, err := kube.CoreV1().RESTClient().Get().AbsPath("/apis/longhorn.io/v1beta2/namespaces", namespace, "volumeattachments").DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the cluster does not serve volumeattachments.longhorn.io/v1beta2: is Longhorn 1.5 or later installed? %w", err)
	}
	if err != nil {
		return nil, command.Failed("list Longhorn's VolumeAttachments", "list volumeattachments.longhorn.io -n "+namespace, err)
	}
	return parseLonghorn(raw, namespace)
}

func parseLonghorn(raw []byte, namespace string) ([]facts.LonghornTicket, error) {
	var list attachments
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("read Longhorn's VolumeAttachments: %w", err)
	}
	var tickets []facts.LonghornTicket
	for _, a := range list.Items {
		for _, key := range slices.Sorted(maps.Keys(a.Spec.Tickets)) {
			t := a.Spec.Tickets[key]
			tickets = append(tickets, facts.LonghornTicket{Namespace: namespace, Volume: a.Spec.Volume, Key: key, Type: t.Type, Node: t.NodeID, Parameters: t.Parameters})
		}
	}
	return tickets, nil
}
