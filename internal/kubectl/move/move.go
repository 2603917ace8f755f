// SPDX-License-Identifier: Apache-2.0

// Package move has kubectl moorage attach and detach, and ticket make, renew and end: they bring volumes to
// a node, or let them go, by hand.
//
// Reads: all objects of the ledger. Decides: nothing; the arbiter says whether a ticket would be granted,
// and the scheduler grants it or not. Writes: VolumeTickets: creates them, renews their time, and deletes
// them again. It takes no volume away from its users: it refuses, and names them.
package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// options are the common flags of all commands, and the node, which some commands have.
type options struct {
	base    *command.Base
	node    string
	dryRun  string
	wait    bool
	timeout time.Duration
}

const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

func (o *options) add(cmd *cobra.Command) {
	o.addNode(cmd, "The node (required)")
	if err := cmd.MarkFlagRequired("node"); err != nil {
		cobra.CompErrorln(err.Error())
	}
}

// addNode adds all flags; the node may be left out.
func (o *options) addNode(cmd *cobra.Command, usage string) {
	o.addDryRun(cmd)
	f := cmd.Flags()
	f.BoolVar(&o.wait, "wait", true, "Wait until it is done")
	f.DurationVar(&o.timeout, "timeout", 2*time.Minute, "For how long to wait")
	f.StringVar(&o.node, "node", "", usage)
	o.complete(cmd, "node", o.base.Complete(command.Names("nodes")))
}

func (o *options) complete(cmd *cobra.Command, flag string, names cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, names); err != nil {
		cobra.CompErrorln(err.Error())
	}
}

func (o *options) addDryRun(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.dryRun, "dry-run", dryRunNone, `Must be "none", "server", or "client": with client nothing is sent, with server nothing is kept`)
	f.Lookup("dry-run").NoOptDefVal = dryRunClient
}

func (o *options) validDryRun() error {
	if o.base.Flags.Bundle != "" && o.dryRun != dryRunClient {
		return errors.New("--bundle: a bundle is read only: nothing in it can be changed. Leave --bundle out to ask the cluster, or add --dry-run=client")
	}
	switch o.dryRun {
	case dryRunNone, dryRunClient, dryRunServer:
		return nil
	}
	return fmt.Errorf(`invalid dry-run value (%v). Must be "none", "server", or "client"`, o.dryRun)
}

func (o *options) validate() error {
	if err := o.validDryRun(); err != nil {
		return err
	}
	if o.wait && o.timeout <= 0 {
		return fmt.Errorf("--timeout %s: must be positive; --wait=false does not wait", o.timeout)
	}
	return nil
}

// volume is the named PersistentVolume: NAME, pv/NAME, or pvc/NAME of a claim in the namespace. The node
// has to be there, too.
func (o *options) volume(w *facts.World, namespace, arg string) (string, error) {
	name := arg
	if kind, rest, typed := strings.Cut(arg, "/"); typed {
		switch kind {
		case "pv", "persistentvolume", "persistentvolumes":
			name = rest
		case "pvc", "claim", "persistentvolumeclaim", "persistentvolumeclaims":
			claim := w.Claim(namespace, rest)
			switch {
			case claim == nil:
				return "", command.Missing(w.Unseen, "persistentvolumeclaims", namespace, rest)
			case claim.Spec.VolumeName == "":
				return "", fmt.Errorf("claim %s/%s is not bound to a volume yet. See why: kubectl moorage explain pvc %s -n %s", namespace, rest, rest, namespace)
			}
			name = claim.Spec.VolumeName
		default:
			return "", fmt.Errorf("%q is no volume: name a PersistentVolume, or pvc/NAME with -n", arg)
		}
	}
	if w.PersistentVolume(name) == nil {
		return "", command.Missing(w.Unseen, "persistentvolumes", "", name)
	}
	if w.Node(o.node) == nil {
		return "", command.Missing(w.Unseen, "nodes", "", o.node)
	}
	return name, nil
}

func (o *options) suffix() string {
	switch o.dryRun {
	case dryRunClient:
		return " (dry run)"
	case dryRunServer:
		return " (server dry run)"
	}
	return ""
}

func (o *options) serverDryRun() []string {
	if o.dryRun == dryRunServer {
		return []string{"All"}
	}
	return nil
}

func (o *options) refusal(format string, args ...any) error {
	return &command.ExitError{Code: command.ExitFindings, Message: fmt.Sprintf(format, args...)}
}

func (o *options) say(format string, args ...any) error {
	return o.base.Say(o.base.Streams.Out, format, args...)
}

var errDone = errors.New("done")

// until follows the cluster until see is done. It prints the reason of the wait when it changes.
func (o *options) until(ctx context.Context, c *cluster.Cluster, see func(*facts.World) (done bool, waits string, err error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, errTimeout)
	defer cancel()
	last := ""
	err := c.Follow(ctx, func(w *facts.World) error {
		done, waits, err := see(w)
		switch {
		case err != nil:
			return err
		case done:
			return errDone
		case waits != last:
			last = waits
			return o.say("waiting: %s", waits)
		}
		return nil
	})
	switch {
	case errors.Is(err, errDone):
		return nil
	case errors.Is(context.Cause(ctx), errTimeout):
		return fmt.Errorf("timed out after %s, waiting for %s. It goes on in the cluster", o.timeout, cmp.Or(last, "the API server"))
	case err == nil:
		return ctx.Err() // Ctrl-C
	}
	return err
}

var errTimeout = errors.New("timed out")

var errNotInstalled = errors.New("Moorage is not installed in this cluster, and its controller attaches: docs/operate/quickstart.md")

type attachOptions struct {
	options
	ttl time.Duration
}

// NewAttachCommand makes kubectl moorage attach.
func NewAttachCommand(b *command.Base) *cobra.Command {
	o := &attachOptions{options: options{base: b}}
	cmd := &cobra.Command{
		Use: "attach (PV | pvc/NAME) --node NODE", Short: "Attach a volume to a node by hand, with a ticket that ends by itself",
		Example: "  # Look into a volume for ten minutes\n  kubectl moorage attach pv-db --node worker-1 --ttl 10m\n\n  # The volume of a claim\n  kubectl moorage attach pvc/data-db-0 -n shop --node worker-1",
		Long: "Attach a volume to a node by hand, such as for a repair or a copy. It makes a VolumeTicket of type Manual, which ends after --ttl, or with kubectl moorage detach.\n\n" +
			"A volume that is in use elsewhere is refused, and the command says who uses it: nobody loses a volume.\n\n" +
			"Who may not read PersistentVolumes and nodes makes a ticket for the claim: kubectl moorage ticket make.\n\n" +
			"Exit code: 0 when it is attached, 2 when it is refused, 1 when something failed.",
		Args: command.One("volume", "kubectl moorage attach (PV | pvc/NAME) --node NODE"), ValidArgsFunction: b.Complete(command.Names("persistentvolumes")),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.add(cmd)
	cmd.Flags().DurationVar(&o.ttl, "ttl", time.Hour, "After how long the controller ends the ticket")
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
	pv, err := o.volume(w, c.Namespace, name)
	if err != nil {
		return err
	}
	ticket, err := w.ManualTicket(pv, o.node, w.Home, int64(o.ttl/time.Second))
	if err != nil {
		return err
	}
	if _, exists := w.TicketNow(ticket.Namespace, ticket.Name); !exists {
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
	return o.say("%s is attached to %s%s. To end it sooner: `kubectl moorage detach %s --node %s`%s", pv, o.node, lasts(ticket, created, o.ttl), pv, o.node, leaves)
}

// lasts is for how long a ticket has its volumes: a ticket that was there already has a time of its own.
func lasts(ticket *v1alpha1.VolumeTicket, created bool, ttl time.Duration) string {
	if created {
		return fmt.Sprintf(" for %s", ttl)
	}
	return fmt.Sprintf(" by a ticket that was there already. When it ends: `kubectl moorage ticket explain %s -n %s`", ticket.Name, ticket.Namespace)
}

// create writes the ticket, and says whether it is new. An existing ticket is the same request.
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

// await waits until the scheduler has granted a ticket and its volumes are attached. leaves says how they
// may be taken away before the ticket ends, for the end of the output; empty: no such danger is known.
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

// NewDetachCommand makes kubectl moorage detach.
func NewDetachCommand(b *command.Base) *cobra.Command {
	o := &options{base: b}
	cmd := &cobra.Command{
		Use: "detach (PV | pvc/NAME) --node NODE", Short: "Detach a volume that was attached to a node by hand",
		Example: "  # Let go of it before its time is over\n  kubectl moorage detach pv-db --node worker-1",
		Long: "Detach a volume that was attached to a node by hand: delete the manual tickets for it there, and wait until it is detached.\n\n" +
			"A volume that a pod or another ticket uses there stays, and the command says who uses it.\n\n" +
			"Exit code: 0 when it is detached, 2 when it is refused, 1 when something failed.",
		Args: command.One("volume", "kubectl moorage detach (PV | pvc/NAME) --node NODE"), ValidArgsFunction: b.Complete(command.Names("persistentvolumes")),
		RunE: func(cmd *cobra.Command, args []string) error { return o.detach(cmd.Context(), args[0]) },
	}
	o.add(cmd)
	return cmd
}

func (o *options) detach(ctx context.Context, name string) error {
	if err := o.validate(); err != nil {
		return err
	}
	c, w, err := o.base.Read(ctx)
	if err != nil {
		return err
	}
	pv, err := o.volume(w, c.Namespace, name)
	if err != nil {
		return err
	}
	at, err := w.At(pv, o.node)
	if err != nil {
		return err
	}
	switch {
	case !at.There:
		return o.say("%s is not at %s", pv, o.node)
	case at.OnlyWanted && len(at.Manual) == 0:
		return o.say("%s is not at %s, where it is wanted: %s", pv, o.node, usersOf(at.Others))
	case len(at.Manual) == 0 && len(at.Others) > 0:
		return o.refusal("%s is in use at %s: %s", pv, o.node, usersOf(at.Others))
	case len(at.Manual) == 0:
		return o.unwanted(pv, at)
	}
	for _, t := range at.Manual {
		if err := o.remove(ctx, c, t); err != nil {
			return err
		}
	}
	if len(at.Others) > 0 {
		return o.refusal("%s stays at %s, where it is in use: %s", pv, o.node, usersOf(at.Others))
	}
	if o.dryRun != dryRunNone || !o.wait {
		return nil
	}
	return o.awaitGone(ctx, c, pv)
}

// unwanted says why an unwanted volume is still there: no command makes it go sooner than is safe.
func (o *options) unwanted(pv string, at facts.At) error {
	if at.Reason != nil {
		return o.refusal("nobody wants %s at %s any more, and it can't leave: %s: %s", pv, o.node, at.Reason.Code, at.Reason.Message)
	}
	return o.refusal("nobody wants %s at %s any more (%s): moorage-controller detaches it as soon as that is safe, and a policy's detachDelay is over or somebody wants the slot", pv, o.node, at.NodeVolume.State)
}

func (o *options) remove(ctx context.Context, c *cluster.Cluster, t facts.Requester) error {
	if o.dryRun != dryRunClient {
		err := c.Moorage.VolumeTickets(t.Namespace).Delete(ctx, t.Name, metav1.DeleteOptions{DryRun: o.serverDryRun()})
		if err != nil && !apierrors.IsNotFound(err) {
			return command.Failed("delete the ticket", "delete volumetickets.moorage.dev -n "+t.Namespace, err)
		}
	}
	return o.say("volumeticket.moorage.dev/%s deleted from namespace %s%s", t.Name, t.Namespace, o.suffix())
}

func (o *options) awaitGone(ctx context.Context, c *cluster.Cluster, pv string) error {
	err := o.until(ctx, c, func(w *facts.World) (bool, string, error) {
		at, err := w.At(pv, o.node)
		switch {
		case err != nil || !at.There:
			return true, "", nil // the volume may have gone with its claim
		case len(at.Others) > 0:
			return false, "", o.refusal("%s came back to %s meanwhile: %s", pv, o.node, usersOf(at.Others))
		case at.Reason != nil:
			return false, at.Reason.Code + ": " + at.Reason.Message, nil
		}
		return false, at.NodeVolume.State, nil
	})
	if err != nil {
		return err
	}
	return o.say("%s is detached from %s", pv, o.node)
}

func usersOf(users []facts.User) string {
	var names []string
	for _, u := range users {
		names = append(names, fmt.Sprintf("%s (%s)", u.Requester, strings.ToLower(u.State)))
	}
	return strings.Join(names, ", ")
}
