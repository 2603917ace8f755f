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

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/execute"
	"github.com/moorage-dev/moorage/internal/flow"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/work"
)

// grantAt decides on the pending tickets of one node, round by round, until
// none is left that another look would help now. Whose pause has ended while others
// were written on is looked at again at once.
func (c *Controller) grantAt(ctx context.Context, name ledger.NodeName) (time.Duration, error) {
	for {
		began := c.config.Now()
		again, err := c.round(ctx, name)
		if err != nil || ctx.Err() != nil {
			return 0, err
		}
		if again {
			continue
		}
		after := flow.Resumes(c.config.Cache.Snapshot(), name, began, c.refused.left(began))
		if after == 0 {
			return 0, nil
		}
		return max(after-c.config.Now().Sub(began), time.Millisecond), nil
	}
}

// maxParallelWrites is how many answers of one node are written side by side.
const maxParallelWrites = 8

// round decides on the pending tickets of a node, and writes what follows side
// by side. Its error is flow.ErrStale: a ticket whose write failed pauses by itself, and
// no other of its node with it.
func (c *Controller) round(ctx context.Context, name ledger.NodeName) (again bool, err error) {
	decided, again := c.decide(name)
	var writing sync.WaitGroup
	var errs failures
	places := make(chan struct{}, maxParallelWrites)
	for _, d := range decided {
		places <- struct{}{}
		writing.Go(func() {
			err := c.write(ctx, flow.Decide(d))
			c.refused.end(d, flow.AttemptEnd(err), c.config.Now())
			if flow.AttemptEnd(err) == flow.Stale {
				errs.add(d.Ticket.ID, err)
			} else if err != nil && ctx.Err() == nil {
				work.Log(ctx, grantsName, d.Ticket.ID, err, c.refused.left(c.config.Now())(d.Ticket))
			}
			<-places
		})
	}
	writing.Wait()
	return again, errors.Join(errs.list...)
}

// decide decides on the pending tickets of a node, and has the ledger know of the grants.
func (c *Controller) decide(name ledger.NodeName) ([]flow.Decided, bool) {
	began := c.deciding.began()
	decided, again := flow.Round(c.config.Arbiter, c.config.Cache.Snapshot(), name, c.config.Now(), c.refused.left(c.config.Now()))
	decided, overtaken := c.deciding.announce(c.config.Cache, name, began, decided)
	return decided, again || overtaken
}

// refused keeps the pauses of tickets of which a write failed. Safe for parallel use.
type refused struct {
	mu     sync.Mutex
	pauses flow.TicketPauses
}

// left says for how long a ticket is left alone from a time on.
func (r *refused) left(now time.Time) flow.Paused {
	return func(t *ledger.Ticket) time.Duration {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.pauses.Left(t, now)
	}
}

func (r *refused) end(d flow.Decided, end flow.End, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pauses.End(d, end, work.Spread, now)
}

// failures collects errors. add is safe for parallel use.
type failures struct {
	mu   sync.Mutex
	list []error
}

func (f *failures) add(id ledger.TicketID, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, fmt.Errorf("ticket %s: %w", id, err))
}

// write writes what was decided on a ticket.
func (c *Controller) write(ctx context.Context, task flow.Task) error {
	return c.config.Write.Carry(ctx, task, c.granted(task.Ticket))
}

// granted makes a ticket's status with condition Granted, as a decision has it.
func (c *Controller) granted(t *ledger.Ticket) execute.Status {
	return func(r flow.Request) (*v1alpha1.VolumeTicket, error) {
		object, ok := c.config.Cache.Ticket(t.ID)
		if !ok || object.ResourceVersion != r.Version {
			return nil, fmt.Errorf("%w: ticket %s has another version", flow.ErrStale, t.ID)
		}
		granted := condition(v1alpha1.TicketGranted, statusOf(r.Phase), r.Verdict, v1alpha1.ReasonGranted, object, c.config.Now())
		chosen := r.Node != "" && object.Status.NodeName != string(r.Node)
		if says(object, granted) && object.Status.Interruptions == r.Interruptions && t.YieldingSince == r.YieldingSince && !chosen {
			return nil, nil
		}
		next := object.DeepCopy()
		if chosen {
			next.Status.NodeName = string(r.Node)
		}
		yielding(next, r)
		meta.SetStatusCondition(&next.Status.Conditions, granted)
		next.Status.Epoch, next.Status.Interruptions = max(next.Status.Epoch, r.Epoch), r.Interruptions
		if r.Phase != ledger.TicketGranted && meta.IsStatusConditionTrue(next.Status.Conditions, v1alpha1.TicketSatisfied) {
			meta.SetStatusCondition(&next.Status.Conditions, condition(v1alpha1.TicketSatisfied, metav1.ConditionFalse, r.Verdict, "", object, c.config.Now()))
		}
		next.Status.Volumes = volumes(c.config.Cache.Snapshot(), t, r.Granted)
		next.Status.State = stateOf(next)
		return next, nil
	}
}

// yielding puts down whether a ticket is asked to let go of its volumes, until when, and for whom.
func yielding(t *v1alpha1.VolumeTicket, r flow.Request) {
	meta.RemoveStatusCondition(&t.Status.Conditions, v1alpha1.TicketYielding)
	if r.YieldingSince == 0 {
		return
	}
	meta.SetStatusCondition(&t.Status.Conditions, askedFor(t, r.YieldingSince, r.Notice, r.Verdict))
}

// askedFor is the condition by which a ticket is asked, since a time in seconds since 1970, to let
// go of its volumes within a notice.
func askedFor(t *v1alpha1.VolumeTicket, began int64, notice time.Duration, v arbiter.Verdict) metav1.Condition {
	since := time.Unix(began, 0)
	c := condition(v1alpha1.TicketYielding, metav1.ConditionTrue, v, string(v.First().Code), t, since)
	c.Message = "let go by " + since.Add(notice).UTC().Format(time.RFC3339) + ": " + message(v)
	return c
}

// statusOf is condition Granted's status in a phase.
func statusOf(phase ledger.TicketPhase) metav1.ConditionStatus {
	if phase == ledger.TicketGranted {
		return metav1.ConditionTrue
	}
	return metav1.ConditionUnknown
}

// as is the status of one object, as it is.
func as(next *v1alpha1.VolumeTicket) execute.Status {
	next.Status.State = stateOf(next)
	return func(flow.Request) (*v1alpha1.VolumeTicket, error) { return next, nil }
}
