// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/execute"
	"github.com/moorage-dev/moorage/internal/ledger"
)

func holdName(step arbiter.Step) string {
	return v1alpha1.VolumeHoldName(step.Volume.Driver, step.Volume.Handle)
}

// grantAt decides on the pending tickets of one node, one after the other:
// each on the facts that the one before it left.
func (c *Controller) grantAt(ctx context.Context, name ledger.NodeName) (time.Duration, error) {
	var errs []error
	for _, id := range pending(c.config.Cache.Snapshot(), name) {
		if err := c.answer(ctx, id); err != nil {
			errs = append(errs, fmt.Errorf("ticket %s: %w", id, err))
		}
	}
	return 0, errors.Join(errs...)
}

// pending lists the tickets of a node that are to be decided: who ranks first
// comes first, so that nobody is refused for the sake of one who is refused
// after him.
func pending(s ledger.Snapshot, name ledger.NodeName) []ledger.TicketID {
	node := s.Node(name)
	if node == nil {
		return nil
	}
	list := slices.Clone(node.Tickets)
	slices.SortFunc(list, func(a, b ledger.TicketID) int {
		x, y := s.Ticket(a), s.Ticket(b)
		if x == nil || y == nil {
			return 0
		}
		return cmp.Or(cmp.Compare(y.Type.Priority(), x.Type.Priority()), cmp.Compare(x.Created, y.Created),
			cmp.Compare(x.ID.Namespace, y.ID.Namespace), cmp.Compare(x.PodName, y.PodName), cmp.Compare(x.ID.Name, y.ID.Name))
	})
	return list
}

// answer decides on one pending ticket and writes what follows.
func (c *Controller) answer(ctx context.Context, id ledger.TicketID) error {
	now := c.config.Now()
	s := c.config.Cache.Snapshot()
	t := s.Ticket(id)
	if t == nil || t.Ghost || t.Phase != ledger.TicketPending {
		return nil
	}
	d := Decide(c.config.Arbiter, s, t, now)
	switch d.Answer {
	case Grant:
		for _, step := range d.Holds {
			if err := c.config.Write.Do(ctx, step); err != nil {
				return err
			}
		}
		return c.write(ctx, t, metav1.ConditionTrue, d.Verdict)
	case Refuse:
		c.config.Events.Refused(t, d.Verdict.First())
		return c.write(ctx, t, metav1.ConditionFalse, d.Verdict)
	}
	return c.write(ctx, t, metav1.ConditionUnknown, d.Verdict)
}

// write puts condition Granted on exactly the version of the ticket that was
// decided on, unless it says so already.
func (c *Controller) write(ctx context.Context, t *ledger.Ticket, status metav1.ConditionStatus, v arbiter.Verdict) error {
	object, ok := c.config.Cache.Ticket(t.ID)
	if !ok || object.ResourceVersion != t.Version {
		return fmt.Errorf("%w: ticket %s has another version", execute.ErrStale, t.ID)
	}
	granted := condition(v1alpha1.TicketGranted, status, v, v1alpha1.ReasonGranted, object, c.config.Now())
	if says(object, granted) {
		return nil
	}
	next := object.DeepCopy()
	meta.SetStatusCondition(&next.Status.Conditions, granted)
	next.Status.Epoch = max(next.Status.Epoch, c.config.Epoch)
	next.Status.Volumes = volumes(c.config.Cache.Snapshot(), t)
	return c.config.Write.WriteTicketStatus(ctx, next)
}

// TakeOver writes the term's epoch into every ticket that is not granted, so
// that a commit which an older leader still has in flight fails on the
// ticket's version. Nothing may be granted before. Its error is the context's.
func (c *Controller) TakeOver(ctx context.Context) error {
	for {
		err := c.takeOverOnce(ctx)
		if err == nil {
			return nil
		}
		klog.FromContext(ctx).V(1).Info("Taking over the pending tickets takes another round", "why", err.Error())
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(takeOverPause):
		}
	}
}

// takeOverPause is between two rounds of taking over; the second round finds
// what the first one's stale facts hid.
const takeOverPause = 100 * time.Millisecond

func (c *Controller) takeOverOnce(ctx context.Context) error {
	var errs []error
	for t := range c.config.Cache.Snapshot().Tickets() {
		object, ok := c.config.Cache.Ticket(t.ID)
		if !ok || t.Ghost || t.Phase != ledger.TicketPending || c.ttl.taken(t.UID) {
			continue
		}
		next := object.DeepCopy()
		next.Status.Epoch = max(c.config.Epoch, object.Status.Epoch+1)
		if err := c.config.Write.WriteTicketStatus(ctx, next); err != nil {
			errs = append(errs, err)
			continue
		}
		c.ttl.take(t.UID)
	}
	return errors.Join(errs...)
}
