// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"maps"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// TicketPauses keeps tickets from a new decision after an unsuccessful write. Only a change of the ticket
// itself ends the pause. Its methods are serial; its zero value is empty.
type TicketPauses struct {
	tickets map[ledger.TicketID]ticketPause
	swept   time.Time // the last sweep of old pauses
}

type ticketPause struct {
	uid, version string // of the ticket in the decision
	attempts     Attempts
	until        time.Time
}

// forgotten is how long an ended pause still lengthens the next one.
const forgotten = 2 * longestFailed

// Left is the rest of a ticket's pause; 0: none.
func (p *TicketPauses) Left(t *ledger.Ticket, now time.Time) time.Duration {
	k, known := p.tickets[t.ID]
	if !known || k.uid != t.UID || k.version != t.Version {
		return 0
	}
	return max(0, k.until.Sub(now))
}

// End notes the outcome of the write of a ticket's decision.
func (p *TicketPauses) End(t *ledger.Ticket, end End, spread Spread, now time.Time) {
	if now.Sub(p.swept) > forgotten {
		p.sweep(now)
	}
	k := p.tickets[t.ID]
	switch {
	case end != Failed:
		delete(p.tickets, t.ID)
		return
	case k.uid != t.UID:
		k = ticketPause{}
	}
	k.uid, k.version = t.UID, t.Version
	k.until = now.Add(k.attempts.Fail(end, spread))
	if p.tickets == nil {
		p.tickets = map[ledger.TicketID]ticketPause{}
	}
	p.tickets[t.ID] = k
}

// sweep is rare, since it costs all pauses: while the API server is down each write adds one.
func (p *TicketPauses) sweep(now time.Time) {
	p.swept = now
	maps.DeleteFunc(p.tickets, func(_ ledger.TicketID, k ticketPause) bool { return now.Sub(k.until) > forgotten })
}

// Len is the number of tickets with a pause.
func (p *TicketPauses) Len() int { return len(p.tickets) }
