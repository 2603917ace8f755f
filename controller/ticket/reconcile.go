// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/tickets"
)

func (c *Controller) reconcile(ctx context.Context, id ledger.TicketID) (time.Duration, error) {
	s := c.config.Cache.Snapshot()
	t := s.Ticket(id)
	if t == nil {
		c.ttl.forget(id)
		return 0, c.dropOfPod(ctx, id)
	}
	return c.lookAfter(ctx, s, t)
}

// typeOfPods is the type of earlier releases' tickets for pods.
const typeOfPods v1alpha1.TicketType = "Pod"

// dropOfPod deletes an earlier release's ticket for a pod: nothing else would end it before the pod.
func (c *Controller) dropOfPod(ctx context.Context, id ledger.TicketID) error {
	object, ok := c.config.Cache.Ticket(id)
	if !ok || object.Spec.Type != typeOfPods || object.DeletionTimestamp != nil {
		return nil
	}
	return c.config.Write.Carry(ctx, protocol.Ending(&ledger.Ticket{ID: id, UID: string(object.UID), Version: object.ResourceVersion}), nil)
}

func (c *Controller) lookAfter(ctx context.Context, s ledger.Snapshot, t *ledger.Ticket) (time.Duration, error) {
	left, err := c.expire(ctx, t)
	if left < 0 {
		return 0, err
	}
	// Also if its own time can't be written: the end by its node needs no such write.
	ended, failed := c.endByNode(ctx, s, t)
	if ended < 0 {
		return 0, failed
	}
	left = protocol.Sooner(left, ended)
	if err = cmp.Or(err, failed); err != nil {
		return left, err
	}
	again, err := c.satisfied(ctx, s, t)
	return protocol.Sooner(left, again), err
}

// waitsAgain is a waiting granted ticket's interval: its reason may change by time or unwatched actors.
const waitsAgain = 30 * time.Second

// satisfied keeps a granted ticket's condition Satisfied. It is written together with the loss of the grant
// (granted), and is True on no other ticket. It returns a waiting ticket's time until the next check.
func (c *Controller) satisfied(ctx context.Context, s ledger.Snapshot, t *ledger.Ticket) (again time.Duration, err error) {
	object, ok := c.config.Cache.Ticket(t.ID)
	if !ok || object.ResourceVersion != t.Version {
		return 0, nil // another event follows
	}
	if t.Phase != ledger.TicketGranted && !meta.IsStatusConditionTrue(object.Status.Conditions, v1alpha1.TicketSatisfied) {
		return 0, nil // as Granted says
	}
	verdict := c.config.Arbiter.Satisfied(s, t, c.config.Now())
	status := metav1.ConditionFalse
	if verdict.Allowed() {
		status = metav1.ConditionTrue
	} else if t.Phase == ledger.TicketGranted {
		again = waitsAgain
	}
	now := tickets.Condition(v1alpha1.TicketSatisfied, status, verdict, v1alpha1.ReasonSatisfied, object, c.config.Now())
	granted, named := t.Granted, true
	if len(granted) == 0 && t.Phase == ledger.TicketGranted { // an earlier release's grant, without volumes
		granted = s.TicketAt(t.ID)
		named = !slices.ContainsFunc(granted, ledger.VolumeID.IsReal)
	}
	if named && (tickets.Says(object, now) || passes(object, verdict)) {
		return again, nil
	}
	next := object.DeepCopy()
	meta.SetStatusCondition(&next.Status.Conditions, now)
	next.Status.Volumes = tickets.Volumes(s, t, granted)
	return again, c.config.Write.Carry(ctx, protocol.Write(t), tickets.As(next))
}

// passes: the ticket waits only for a normal attach, which is not worth a write.
func passes(t *v1alpha1.VolumeTicket, v rules.Verdict) bool {
	if v.Allowed() || meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketSatisfied) != nil {
		return false
	}
	for _, r := range v.Reasons {
		if !rules.Transient(r.Code) {
			return false
		}
	}
	return true
}

// expire ends a ticket whose time is over. Otherwise it returns the longest time until the next check: 0
// for none, negative if it is over.
func (c *Controller) expire(ctx context.Context, t *ledger.Ticket) (time.Duration, error) {
	object, ok := c.config.Cache.Ticket(t.ID)
	if t.TTLSeconds == 0 || !ok {
		return 0, nil
	}
	renewed, counted := renewal(object), object.Status.TTLElapsedSeconds
	if renewed != object.Status.Renewed {
		counted = 0
	}
	lived, fresh := c.ttl.of(t, renewed, convert.Elapsed(counted), c.config.Now())
	left := time.Duration(t.TTLSeconds)*time.Second - lived
	if left <= 0 {
		return c.end(ctx, protocol.Ending(t), rules.EndTimeOver)
	}
	step := rules.TTLStep(t.TTLSeconds)
	// A renewal is written at once, until it succeeds; without counted time, with its first step.
	unwritten := renewed != object.Status.Renewed && (fresh || object.Status.TTLElapsedSeconds > 0)
	if elapsed := int64(lived / time.Second); elapsed-object.Status.TTLElapsedSeconds >= int64(step/time.Second) || unwritten {
		next := object.DeepCopy()
		next.Status.TTLElapsedSeconds, next.Status.Renewed = elapsed, renewed
		if err := c.config.Write.Carry(ctx, protocol.Write(t), tickets.As(next)); err != nil {
			return left, err
		}
	}
	return min(left, step), nil
}

const maxRenewal = 64

// renewal is the value that starts a ticket's time; empty: its creation.
func renewal(t *v1alpha1.VolumeTicket) string {
	value := []rune(strings.ToValidUTF8(t.Annotations[v1alpha1.AnnotationRenewed], ""))
	return string(value[:min(len(value), maxRenewal)])
}
