// SPDX-License-Identifier: Apache-2.0

// Package move has kubectl moorage ticket make, renew, let-go and end.
//
// Reads: the ledger's objects. Decides: nothing. Writes: VolumeTickets: creates, renews and deletes them.
package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

type options struct{ base *command.Base }

func (o *options) refusal(format string, args ...any) error {
	return &command.ExitError{Code: command.ExitFindings, Message: fmt.Sprintf(format, args...)}
}

func (o *options) say(format string, args ...any) error {
	return o.base.Say(o.base.Streams.Out, format, args...)
}

var errDone = errors.New("done")

// until follows the cluster until see is done, and prints a changed reason.
func (o *makeOptions) until(ctx context.Context, c *cluster.Cluster, see func(*facts.World) (done bool, waits string, err error)) error {
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

// lasts is how long a ticket has its volumes: an old ticket keeps its own time.
func lasts(ticket *v1alpha1.VolumeTicket, created bool, ttl time.Duration) string {
	if created {
		return fmt.Sprintf(" for %s", ttl)
	}
	return fmt.Sprintf(" by a ticket that was there already. When it ends: `kubectl moorage ticket explain %s -n %s`", ticket.Name, ticket.Namespace)
}

// create says whether the ticket is new: an existing ticket is the same request.
func (o *makeOptions) create(ctx context.Context, c *cluster.Cluster, ticket *v1alpha1.VolumeTicket) (created bool, err error) {
	verb := "created"
	switch _, err := c.Moorage.VolumeTickets(ticket.Namespace).Create(ctx, ticket, metav1.CreateOptions{}); {
	case apierrors.IsAlreadyExists(err):
		verb = "unchanged"
	case err != nil:
		return false, command.Failed("create the ticket", "create volumetickets.moorage.dev -n "+ticket.Namespace, err)
	}
	return verb == "created", o.say("volumeticket.moorage.dev/%s %s in namespace %s", ticket.Name, verb, ticket.Namespace)
}

// await waits until a ticket is granted and its volumes are attached.
func (o *makeOptions) await(ctx context.Context, c *cluster.Cluster, namespace, name string) error {
	return o.until(ctx, c, func(w *facts.World) (bool, string, error) {
		t, ok := w.TicketNow(namespace, name)
		hidden := command.UnreadTicket(w, namespace, name)
		switch {
		case !ok && hidden != nil:
			return false, "", fmt.Errorf("the ticket asks for its volumes, and whether it has them is not known: %w", hidden)
		case !ok:
			return false, "the ticket to be seen", nil
		case t.State == facts.TicketSatisfied:
			return true, "", nil
		case len(t.Reasons) > 0:
			return false, worded(t.Reasons), nil
		}
		return false, "moorage-controller to decide", nil
	})
}

func worded(reasons []facts.Reason) string {
	var list []string
	for _, r := range reasons {
		list = append(list, r.Code+": "+r.Message)
	}
	return strings.Join(list, "; ")
}
