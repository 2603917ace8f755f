// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"errors"
	"fmt"
	"sync"
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

// grantAt decides on the pending tickets of one node, round by round, until
// none is left that another look would help.
func (c *Controller) grantAt(ctx context.Context, name ledger.NodeName) (time.Duration, error) {
	for {
		again, err := c.round(ctx, name)
		if err != nil || !again {
			return 0, err
		}
	}
}

// abreast is how many answers of one node are written side by side.
const abreast = 8

// round decides on the pending tickets of a node, and writes what follows side
// by side.
func (c *Controller) round(ctx context.Context, name ledger.NodeName) (again bool, err error) {
	decided, again := Round(c.config.Arbiter, c.config.Cache.Snapshot(), name, c.config.Now())
	var writing sync.WaitGroup
	var errs failures
	places := make(chan struct{}, abreast)
	for _, d := range decided {
		places <- struct{}{}
		writing.Go(func() {
			errs.add(d.Ticket.ID, c.answer(ctx, d.Ticket, d.Decision))
			<-places
		})
	}
	writing.Wait()
	return again, errors.Join(errs.list...)
}

// failures collects errors. add is safe for parallel use.
type failures struct {
	mu   sync.Mutex
	list []error
}

func (f *failures) add(id ledger.TicketID, err error) {
	if err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.list = append(f.list, fmt.Errorf("ticket %s: %w", id, err))
	}
}

// answer writes what a decision says.
func (c *Controller) answer(ctx context.Context, t *ledger.Ticket, d Decision) error {
	switch d.Answer {
	case Grant:
		for _, step := range d.Holds {
			if err := c.config.Write.Do(ctx, step); err != nil {
				return err
			}
		}
		return c.write(ctx, t, metav1.ConditionTrue, d.Verdict)
	case Refuse:
		if err := c.prove(ctx, t, d); err != nil {
			return err
		}
		return c.refuse(ctx, t, d.Verdict)
	}
	return c.write(ctx, t, metav1.ConditionUnknown, d.Verdict)
}

// refuse writes that a ticket is not granted, or not any more, and tells its pod
// once that is so.
func (c *Controller) refuse(ctx context.Context, t *ledger.Ticket, v arbiter.Verdict) error {
	if err := c.write(ctx, t, metav1.ConditionFalse, v); err != nil {
		return err
	}
	c.config.Events.Refused(t, v.First())
	return nil
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
