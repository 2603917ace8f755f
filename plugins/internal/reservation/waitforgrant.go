// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// Outcome is what became of a reservation's ticket.
type Outcome struct {
	// Message is why not, in words for people; granted when it is empty.
	Message string
	// Refused: the controller said so, and another node may do.
	Refused bool
	// Unwritten: whether the ticket exists is not known.
	Unwritten bool
	// Silent: the controller said nothing at all in time.
	Silent bool
	// Reason is the code of what the controller refused.
	Reason string
}

// WaitForGrant follows a reservation that is being written to the controller's verdict,
// for so long at most. Where the controller has said nothing of it by then, and has decided on
// others since, it is at work and has not come to this one: a new ticket would be behind those that
// have come meanwhile. So the wait goes on for the same time again, so often in all. It ends without
// a verdict with ctx.
func (b *Book) WaitForGrant(ctx context.Context, r *Reservation, limit time.Duration, times int) (outcome Outcome, ended bool) {
	late := time.NewTimer(limit)
	defer late.Stop()
	began := b.decided.Load()
	decided := began
	select {
	case <-ctx.Done():
		return Outcome{}, true
	case <-late.C:
		return Outcome{Message: fmt.Sprintf("the reservation could not be written within %s, and will be tried again", inWords(limit)), Unwritten: true}, false
	case <-r.attempt.done:
	}
	if err := r.attempt.err; err != nil {
		return Outcome{Message: fmt.Sprintf("the reservation could not be written, and will be tried again: %v", err), Unwritten: true}, false
	}
	newest, waited := b.written(r), 0
	seen := b.counted(&newest) != nil
	for {
		switch newest.Phase {
		case ledger.TicketGranted:
			b.decided.Add(1)
			return Outcome{}, false
		case ledger.TicketRefused:
			b.decided.Add(1)
			return Outcome{Message: "node(s) refused: " + b.answer(&newest), Refused: true, Reason: newest.Reason}, false
		case ledger.TicketPending: // it waits
		}
		select {
		case <-ctx.Done():
			return Outcome{}, true
		case <-late.C:
			silent, now := b.answer(&newest) == "", b.decided.Load()
			if waited++; silent && waited < times && now != decided {
				decided = now
				late.Reset(limit)
				continue
			}
			return Outcome{Message: b.unanswered(&newest, time.Duration(waited)*limit, b.decided.Load() != began), Silent: silent}, false
		case <-r.news:
		}
		switch known := b.counted(&newest); {
		case known != nil:
			newest, seen = *known, true
		case seen:
			return Outcome{Message: "the reservation was deleted, and will be tried again"}, false
		}
	}
}

// counted is a ticket as the ledger has it; nil where it is gone, or has not been heard of.
func (b *Book) counted(t *ledger.Ticket) *ledger.Ticket {
	if known := b.facts.Snapshot().Ticket(t.ID); known != nil && known.UID == t.UID && !known.Ghost {
		return known
	}
	return nil
}

// written is the ticket of a reservation as it is known when its write is over.
// It may be decided already: one that was taken over, or one on which the
// controller was faster than the answer to the write. The ledger may not say so,
// since a refusal of what is not known to be written is taken for that of an
// earlier attempt; see Book.reassert.
func (b *Book) written(r *Reservation) ledger.Ticket {
	object := r.attempt.ticket
	b.facts.Saw(object)
	if newer, ok := b.facts.Ticket(r.Ticket.ID); ok && newer.UID == object.UID {
		object = newer
	}
	return translate.Ticket(object)
}

// unanswered says why a ticket was not decided in time, as far as the
// controller has said so; others: it has decided on others meanwhile.
func (b *Book) unanswered(t *ledger.Ticket, limit time.Duration, others bool) string {
	if message := b.answer(t); message != "" {
		return fmt.Sprintf("not granted within %s, and will be tried again: %s", inWords(limit), message)
	}
	if others {
		return fmt.Sprintf("moorage-controller did not answer within %s, though it decided on others; its log says why. It will be tried again", inWords(limit))
	}
	return fmt.Sprintf("moorage-controller did not answer within %s; does it run, and lead? It will be tried again", inWords(limit))
}

// inWords is a time as a message names it: of what is left of three seconds, three.
func inWords(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}

// answer is the controller's own message on a ticket, or at least its code;
// empty when it has said nothing.
func (b *Book) answer(t *ledger.Ticket) string {
	if object, ok := b.facts.Ticket(t.ID); ok && string(object.UID) == t.UID {
		if granted := meta.FindStatusCondition(object.Status.Conditions, v1alpha1.TicketGranted); granted != nil && granted.Message != "" {
			return granted.Message
		}
	}
	return t.Reason
}
