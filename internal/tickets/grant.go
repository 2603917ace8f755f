// SPDX-License-Identifier: Apache-2.0

package tickets

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/work"
	"github.com/moorage-dev/moorage/internal/write"
)

// grantAt decides on a node's tickets and begins the writes. It returns the time until the next decision.
func (k *Keeper) grantAt(ctx context.Context, name ledger.NodeName) (time.Duration, error) {
	began := k.config.Now()
	k.config.Order.Lock()
	decided, lapses := k.decide([]ledger.NodeName{name}, nil)
	k.config.Order.Unlock()
	k.write(ctx, decided)
	after := protocol.Sooner(lapses, protocol.Resumes(k.config.Cache.Snapshot(), name, began, k.refused.left(began)))
	if after == 0 {
		return 0, nil
	}
	return max(after-k.config.Now().Sub(began), time.Millisecond), nil
}

// elsewhereAgain is for tickets that wait for a ticket at another node.
const elsewhereAgain = 5 * time.Second

// maxRounds bounds the repetitions for newer tickets.
const maxRounds = 5

// decide decides on the pending tickets for which before, if set, is true, and tells the ledger of the
// grants. It returns the writes, and when the first pod's time for a kept volume or slot ends. The caller
// holds Order.
func (k *Keeper) decide(nodes []ledger.NodeName, before func(*ledger.Ticket) bool) (decided []protocol.Decided, lapses time.Duration) {
	for range maxRounds {
		s, now := k.config.Cache.Snapshot(), k.config.Now()
		line := k.config.Arbiter.Line(s, k.config.Waits.line(s, now), now)
		var round []protocol.Decided
		for _, n := range nodes {
			round = append(round, protocol.Round(line.At(n), s, now, k.refused.left(now), before)...)
		}
		for _, e := range protocol.Announce(round) {
			k.config.Cache.Apply(e)
		}
		s, again := k.config.Cache.Snapshot(), false
		var granted []*ledger.Ticket
		for _, d := range round {
			if t := s.Ticket(d.Ticket.ID); d.Ruling == protocol.Grant && t != nil && t.Granting {
				granted = append(granted, t)
			} else if d.Ruling == protocol.Grant {
				again = again || t != nil && t.UID == d.Ticket.UID // it has a newer version
				continue
			}
			decided = append(decided, d)
		}
		lapses = k.config.Waits.decided(s, line, granted, now)
		if slices.ContainsFunc(nodes, func(n ledger.NodeName) bool { return line.At(n).WaitsElsewhere() }) {
			lapses = protocol.Sooner(lapses, elsewhereAgain)
		}
		if !again {
			break
		}
	}
	return decided, lapses
}

// Before has the tickets decided on that rank before a pod and ask for its volumes, or for slots at its
// node. The caller holds Order, and calls write, if not nil, after it has released Order. kept names the
// pod's volumes that a ticket waits for because they are kept for another pod: the pod must not get them
// first.
func (k *Keeper) Before(pod *ledger.Pod, n ledger.NodeName) (kept []rules.Reason, write func()) {
	term := k.term.Load()
	if term == nil || (*term).Err() != nil {
		return nil, nil
	}
	s := k.config.Cache.Snapshot()
	r := rules.PodRequest(s, pod)
	nodes := protocol.Rivals(s, r, n)
	if len(nodes) == 0 {
		return nil, nil
	}
	decided, _ := k.decide(nodes, func(t *ledger.Ticket) bool { return rules.RanksBefore(t, r) })
	k.writing.Add(1) // the term's end waits for write
	return keptOf(r, decided), func() {
		defer k.writing.Done()
		k.write(*term, decided)
	}
}

func keptOf(r rules.Request, decided []protocol.Decided) []rules.Reason {
	var kept []rules.Reason
	for _, d := range decided {
		for _, reason := range d.Verdict.Reasons {
			if reason.Code == rules.Outranked && !reason.Volume.IsZero() && slices.ContainsFunc(r.Needs, func(n rules.Need) bool { return n.Volume == reason.Volume }) {
				kept = append(kept, reason)
			}
		}
	}
	return kept
}

// maxTold is how many waiting tickets are told at a time. Grants don't wait for that.
const maxTold = 8

// Config.Turn limits messages to waiting tickets, not grants.
func (k *Keeper) write(ctx context.Context, decided []protocol.Decided) {
	for _, d := range decided {
		task := protocol.Decide(d)
		if d.Ruling != protocol.Grant {
			if next, err := k.granted(d.Ticket)(task.Commit); err == nil && next == nil || !k.telling.begin(d.Ticket.ID) {
				continue
			}
		}
		k.writing.Go(func() {
			if d.Ruling != protocol.Grant {
				defer k.telling.end(d.Ticket.ID)
				k.told <- struct{}{}
				defer func() { <-k.told }()
				if k.config.Turn(ctx) != nil {
					return
				}
			}
			k.wrote(ctx, d, k.carry(ctx, task))
		})
	}
}

func (k *Keeper) wrote(ctx context.Context, d protocol.Decided, err error) {
	end := protocol.AttemptEnd(err)
	k.refused.end(d.Ticket, end, k.config.Now())
	if err == nil || ctx.Err() != nil {
		return
	}
	if end != protocol.Stale {
		work.Log(ctx, grantsName, d.Ticket.ID, err, k.refused.left(k.config.Now())(d.Ticket))
	}
	k.nodes.Add(d.Ticket.Node)
}

// Safe for parallel use.
type telling struct {
	mu  sync.Mutex
	ids map[ledger.TicketID]bool
}

func (t *telling) begin(id ledger.TicketID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ids[id] {
		return false
	}
	if t.ids == nil {
		t.ids = map[ledger.TicketID]bool{}
	}
	t.ids[id] = true
	return true
}

func (t *telling) end(id ledger.TicketID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.ids, id)
}

// Safe for parallel use.
type refused struct {
	mu     sync.Mutex
	pauses protocol.TicketPauses
}

func (r *refused) left(now time.Time) protocol.Paused {
	return func(t *ledger.Ticket) time.Duration {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.pauses.Left(t, now)
	}
}

func (r *refused) end(t *ledger.Ticket, end protocol.End, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pauses.End(t, end, work.Spread, now)
}

func (k *Keeper) carry(ctx context.Context, task protocol.Task) error {
	return k.config.Write.Carry(ctx, task, k.granted(task.Ticket))
}

func (k *Keeper) granted(t *ledger.Ticket) write.Status {
	return func(r protocol.Request) (*v1alpha1.VolumeTicket, error) {
		object, ok := k.config.Cache.Ticket(t.ID)
		if !ok || object.ResourceVersion != r.Version {
			return nil, fmt.Errorf("%w: ticket %s has another version", protocol.ErrStale, t.ID)
		}
		granted := Condition(v1alpha1.TicketGranted, statusOf(r.Phase), r.Verdict, v1alpha1.ReasonGranted, object, k.config.Now())
		chosen := r.Node != "" && object.Status.NodeName != string(r.Node)
		if Says(object, granted) && object.Status.Interruptions == r.Interruptions && t.YieldingSince == r.YieldingSince && !chosen {
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
			meta.SetStatusCondition(&next.Status.Conditions, Condition(v1alpha1.TicketSatisfied, metav1.ConditionFalse, r.Verdict, "", object, k.config.Now()))
		}
		next.Status.Volumes = Volumes(k.config.Cache.Snapshot(), t, r.Granted)
		next.Status.State = stateOf(next)
		return next, nil
	}
}

func yielding(t *v1alpha1.VolumeTicket, r protocol.Request) {
	meta.RemoveStatusCondition(&t.Status.Conditions, v1alpha1.TicketYielding)
	if r.YieldingSince == 0 {
		return
	}
	meta.SetStatusCondition(&t.Status.Conditions, askedFor(t, r.YieldingSince, r.Verdict))
}

// began is in seconds since 1970.
func askedFor(t *v1alpha1.VolumeTicket, began int64, v rules.Verdict) metav1.Condition {
	since := time.Unix(began, 0)
	c := Condition(v1alpha1.TicketYielding, metav1.ConditionTrue, v, string(v.First().Code), t, since)
	c.Message = "let go by " + since.Add(rules.Notice).UTC().Format(time.RFC3339) + ": " + message(v)
	return c
}

func statusOf(phase ledger.TicketPhase) metav1.ConditionStatus {
	if phase == ledger.TicketGranted {
		return metav1.ConditionTrue
	}
	return metav1.ConditionUnknown
}
