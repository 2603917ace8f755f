// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/ledger"
)

type makeOptions struct {
	options
	node     string
	wait     bool
	timeout  time.Duration
	kind     string
	claims   []string
	ttl      time.Duration
	wherever bool
	detached bool
}

// NewMakeCommand makes kubectl moorage ticket make.
func NewMakeCommand(b *command.Base) *cobra.Command {
	o := &makeOptions{options: options{base: b}}
	cmd := &cobra.Command{
		Use: "make NAME --type TYPE --node NODE --claim PVC", Short: "Ask for volumes at a node, and wait until they are there",
		Example: "  # Have a claim's volume at a node for a backup\n  kubectl moorage ticket make nightly -n shop --type Backup --ttl 1h \\\n  --node worker-1 --claim data\n\n" +
			"  # The same, where the volume is\n  kubectl moorage ticket make nightly -n shop --type Backup --ttl 1h \\\n  --wherever --claim data\n\n" +
			"  # Have it attached nowhere, to expand it\n  kubectl moorage ticket make grow -n shop --type Expansion --ttl 1h \\\n  --detached --claim data",
		Long: "Ask for volumes at a node, and wait until they are there: it makes a VolumeTicket, which ends after --ttl, or with kubectl moorage ticket end. " +
			"A ticket of that name that asks for the same is left as it is; one that asks for something else is an error.\n\n" +
			"With --wherever Moorage chooses the node: where the volumes are in use or attached, else one with room for them. The ticket's status names it. " +
			"With --detached the command waits until the volumes are attached nowhere: it ends no pod that uses one, and no pod gets one before the ticket ends.\n\n" +
			"The ticket asks for as long as it exists: it goes on waiting after the command has ended.",
		Args: command.One("ticket", "kubectl moorage ticket make NAME --type TYPE --node NODE --claim CLAIM"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	f := cmd.Flags()
	f.BoolVar(&o.wait, "wait", true, "Wait until it is done")
	f.DurationVar(&o.timeout, "timeout", 2*time.Minute, "For how long to wait")
	f.StringVar(&o.node, "node", "", "The node")
	f.BoolVar(&o.wherever, "wherever", false, "Leave the node to Moorage, instead of --node")
	f.BoolVar(&o.detached, "detached", false, "Have the volumes attached nowhere, instead of at --node")
	f.StringVar(&o.kind, "type", "", "What the volumes are for (required): docs/operate/policies.md lists the types")
	f.StringSliceVar(&o.claims, "claim", nil, "A claim of the namespace; may be repeated")
	f.DurationVar(&o.ttl, "ttl", time.Hour, "After how long the controller ends the ticket, unless it is renewed")
	if err := cmd.MarkFlagRequired("type"); err != nil {
		cobra.CompErrorln(err.Error())
	}
	for flag, names := range map[string]cobra.CompletionFunc{
		"node":  b.Complete(command.Names("nodes")),
		"type":  cobra.FixedCompletions(typeNames(), cobra.ShellCompDirectiveNoFileComp),
		"claim": b.Complete(command.Names("persistentvolumeclaims")),
	} {
		if err := cmd.RegisterFlagCompletionFunc(flag, names); err != nil {
			cobra.CompErrorln(err.Error())
		}
	}
	return cmd
}

func given(flags ...bool) int {
	n := 0
	for _, is := range flags {
		if is {
			n++
		}
	}
	return n
}

func typeNames() []string {
	var names []string
	for _, kind := range ledger.TicketTypes() {
		names = append(names, string(kind))
	}
	return names
}

func (o *makeOptions) validate() error {
	switch {
	case o.wait && o.timeout <= 0:
		return fmt.Errorf("--timeout %s: must be positive; --wait=false does not wait", o.timeout)
	case given(o.node != "", o.wherever, o.detached) != 1:
		return errors.New("name the node with --node, leave it to Moorage with --wherever, or have no node with --detached: one of the three")
	case o.detached && (o.kind == string(ledger.TypeLiveMigration) || o.kind == string(ledger.TypeShareManager)):
		return fmt.Errorf("--detached: a %s is at a node: name it with --node", o.kind)
	case o.wherever && o.kind == string(ledger.TypeLiveMigration):
		return errors.New("--wherever: a LiveMigration is to a node: name it with --node")
	case !slices.Contains(typeNames(), o.kind):
		return fmt.Errorf("--type %s is none of %s", o.kind, strings.Join(typeNames(), ", "))
	case len(o.claims) == 0:
		return errors.New("--claim: name at least one")
	}
	return command.CheckTTL(o.ttl)
}

func (o *makeOptions) run(ctx context.Context, name string) error {
	if err := o.validate(); err != nil {
		return err
	}
	c, w, err := o.base.Read(ctx)
	if err != nil {
		return err
	}
	if !w.Served() {
		return errNotInstalled
	}
	ticket := o.ticket(c.Namespace, name)
	if there := w.Ticket(c.Namespace, name); there != nil && !equality.Semantic.DeepEqual(there.Spec.Sorted(), ticket.Spec.Sorted()) {
		return o.refusal("volumeticket.moorage.dev/%s asks for something else, and never changes. To end it: `kubectl moorage ticket end %s -n %s`", name, name, c.Namespace)
	}
	if o.node != "" && w.Node(o.node) == nil {
		missing := command.Missing(w.Unseen, "nodes", "", o.node)
		if err := o.base.Say(o.base.Streams.ErrOut, "Warning: %s While there is no such node, the ticket waits.", facts.Sentence(missing.Error())); err != nil {
			return err
		}
	}
	created, err := o.create(ctx, c, ticket)
	if err != nil || !o.wait {
		return err
	}
	if err := o.await(ctx, c, c.Namespace, name); err != nil {
		return err
	}
	return o.say("%s has its volumes%s%s", name, o.at(ctx, c, name), lasts(ticket, created, o.ttl))
}

func (o *makeOptions) at(ctx context.Context, c *cluster.Cluster, name string) string {
	node := o.node
	if o.detached {
		return " attached nowhere"
	}
	if o.wherever {
		t, err := c.Moorage.VolumeTickets(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return ""
		}
		node = t.Node()
	}
	return " at " + node
}

func (o *makeOptions) ticket(namespace, name string) *v1alpha1.VolumeTicket {
	ticket := &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketType(o.kind), NodeName: o.node, Wherever: o.wherever, Detached: o.detached, TTLSeconds: new(int64(o.ttl / time.Second))},
	}
	for _, claim := range o.claims {
		ticket.Spec.Volumes = append(ticket.Spec.Volumes, v1alpha1.TicketVolume{Claim: &v1alpha1.ClaimReference{Name: claim}})
	}
	return ticket
}

// NewRenewCommand makes kubectl moorage ticket renew.
func NewRenewCommand(b *command.Base) *cobra.Command {
	o := &options{base: b}
	return &cobra.Command{
		Use: "renew NAME", Short: "Start the time of a ticket again",
		Example: "  # The backup takes longer\n  kubectl moorage ticket renew nightly -n shop",
		Args:    command.One("ticket", "kubectl moorage ticket renew NAME"), ValidArgsFunction: b.Complete(command.Names("volumetickets.moorage.dev")),
		RunE: func(cmd *cobra.Command, args []string) error { return o.renew(cmd.Context(), args[0]) },
	}
}

// renew writes the time. The controller counts from its own observation.
func (o *options) renew(ctx context.Context, name string) error {
	c, t, err := o.find(ctx, name)
	if err != nil {
		return err
	}
	ttl := convert.TTLSeconds(t)
	if ttl == 0 {
		return o.refusal("volumeticket.moorage.dev/%s has no time that could end: it ends with its owner, or when it is deleted", name)
	}
	if err := o.mark(ctx, c, t, "renew the ticket", v1alpha1.AnnotationRenewed, c.Clock().UTC().Format(time.RFC3339Nano)); err != nil {
		return err
	}
	return o.say("volumeticket.moorage.dev/%s renewed for %s", name, time.Duration(ttl)*time.Second)
}

// mark writes a holder's annotation; an error names its effect.
func (o *options) mark(ctx context.Context, c *cluster.Cluster, t *v1alpha1.VolumeTicket, what, annotation, value string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": t.UID, "annotations": map[string]string{annotation: value}}})
	if err != nil {
		return err
	}
	if _, err := c.Moorage.VolumeTickets(t.Namespace).Patch(ctx, t.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return command.Failed(what, "patch volumetickets.moorage.dev -n "+t.Namespace, err)
	}
	return nil
}

// NewLetGoCommand makes kubectl moorage ticket let-go.
func NewLetGoCommand(b *command.Base) *cobra.Command {
	o := &options{base: b}
	return &cobra.Command{
		Use: "let-go NAME", Short: "Say that nobody uses the volumes of a ticket that is asked to yield",
		Example: "  # The backup has stopped, and its volume may go now\n  kubectl moorage ticket let-go nightly -n shop",
		Long: "Say that nobody uses the volumes of a ticket that is asked to let go of them (condition Yielding): they go at once to whoever needs them, before the ticket's time is over. " +
			"First stop everything that uses the volumes by the ticket.\n\n" +
			"The ticket stays, and gets its volumes again once nobody who ranks higher wants them. To end it, use kubectl moorage ticket end.",
		Args: command.One("ticket", "kubectl moorage ticket let-go NAME"), ValidArgsFunction: b.Complete(command.Names("volumetickets.moorage.dev")),
		RunE: func(cmd *cobra.Command, args []string) error { return o.letGo(cmd.Context(), args[0]) },
	}
}

func (o *options) letGo(ctx context.Context, name string) error {
	c, t, err := o.find(ctx, name)
	if err != nil {
		return err
	}
	asked := t.Yielding()
	switch {
	case asked == nil:
		return o.refusal("volumeticket.moorage.dev/%s is not asked to let go of its volumes. What it has: `kubectl moorage ticket explain %s -n %s`. To give them up all the same, end it", name, name, t.Namespace)
	case t.LetsGo():
		return o.say("volumeticket.moorage.dev/%s has let go of its volumes already", name)
	}
	if err := o.mark(ctx, c, t, "say that the ticket lets go", v1alpha1.AnnotationLetsGo, v1alpha1.LetsGoValue(asked)); err != nil {
		return err
	}
	return o.say("volumeticket.moorage.dev/%s lets go of its volumes", name)
}

// NewEndCommand makes kubectl moorage ticket end.
func NewEndCommand(b *command.Base) *cobra.Command {
	o := &options{base: b}
	return &cobra.Command{
		Use: "end NAME", Short: "End a ticket: whoever waits for its volumes gets them",
		Example: "  # The backup is done\n  kubectl moorage ticket end nightly -n shop",
		Long:    "End a ticket: whoever waits for its volumes gets them, and what nobody else uses is detached. First stop everything that uses the volumes by the ticket.",
		Args:    command.One("ticket", "kubectl moorage ticket end NAME"), ValidArgsFunction: b.Complete(command.Names("volumetickets.moorage.dev")),
		RunE: func(cmd *cobra.Command, args []string) error { return o.endTicket(cmd.Context(), args[0]) },
	}
}

func (o *options) endTicket(ctx context.Context, name string) error {
	c, t, err := o.find(ctx, name)
	if err != nil {
		return err
	}
	err = c.Moorage.VolumeTickets(t.Namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return command.Failed("delete the ticket", "delete volumetickets.moorage.dev -n "+t.Namespace, err)
	}
	return o.say("volumeticket.moorage.dev/%s deleted from namespace %s", name, t.Namespace)
}

func (o *options) find(ctx context.Context, name string) (*cluster.Cluster, *v1alpha1.VolumeTicket, error) {
	c, err := o.base.Connect()
	if err != nil {
		return nil, nil, err
	}
	t, err := c.Moorage.VolumeTickets(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil, fmt.Errorf("there is no ticket %s in namespace %s: kubectl moorage tickets -n %s lists those that there are", name, c.Namespace, c.Namespace)
	}
	return c, t, err
}
