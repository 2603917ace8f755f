// SPDX-License-Identifier: Apache-2.0

package move

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// NewDetachCommand makes kubectl moorage detach.
func NewDetachCommand(b *command.Base) *cobra.Command {
	o := &options{base: b}
	cmd := &cobra.Command{
		Use: "detach (PV | pvc/NAME) --node NODE", Short: "Detach a volume that was attached to a node by hand",
		Example: "  # Let go of it before its time is over\n  kubectl moorage detach pv-db --node worker-1",
		Long: "Detach a volume that was attached to a node by hand: delete the manual tickets for it there, and wait until it is detached.\n\n" +
			"A volume that a pod or another ticket uses there stays, and the command says who uses it.\n\n" +
			"Who may read claims and no PersistentVolumes names pvc/NAME. Whether the volume has left can't be seen then, and is not waited for.\n\n" +
			"Exit code: 0 when it is detached, 2 when it is refused, 1 when something failed.",
		Args: command.One("volume", "kubectl moorage detach (PV | pvc/NAME) --node NODE"), ValidArgsFunction: b.Complete(command.VolumeNames),
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
	pv, unread, err := o.volume(w, c.Namespace, name)
	if err != nil {
		return err
	}
	if unread != nil {
		return o.endManual(ctx, c, w, unread)
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

// endManual deletes the tickets by which somebody who may not list PersistentVolumes has had a claim's volume attached:
// where the volume is, and who of other namespaces has it there, is not for them to see.
func (o *options) endManual(ctx context.Context, c *cluster.Cluster, w *facts.World, claim *corev1.PersistentVolumeClaim) error {
	const ask = "kubectl auth can-i list persistentvolumes"
	pv := claim.Spec.VolumeName
	if hidden := command.UnreadTicket(w, claim.Namespace, facts.ManualName(pv, o.node)); hidden != nil {
		return hidden
	}
	tickets, pods := w.ManualOf(claim, o.node)
	for _, t := range tickets {
		if err := o.remove(ctx, c, t); err != nil {
			return err
		}
	}
	switch {
	case len(pods) > 0:
		return o.refusal("%s stays at %s, where it is in use: %s", pv, o.node, pods[0])
	case len(tickets) == 0:
		return o.refusal("no ticket in namespace %s has %s attached to %s by hand. Whether anybody else has it there can't be seen: %s", claim.Namespace, pv, o.node, ask)
	case o.dryRun != dryRunNone:
		return nil
	}
	return o.say("%s leaves %s unless somebody of another namespace uses it there. Whether it has left can't be seen: %s", pv, o.node, ask)
}

// unwanted says why a volume is still there that nobody wants: no command
// makes it go sooner than is safe.
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
