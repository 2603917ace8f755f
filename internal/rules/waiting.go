// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A ticket that has lost its volume to an earlier user is not granted again for firstPause, doubled each
// time up to lastPause. Otherwise the ticket and short-lived pods would take the volume from each other.
const (
	firstPause = 10 * time.Second
	lastPause  = 5 * time.Minute
)

// PauseLeft is the rest of an interrupted ticket's pause, as seen by this process; 0: none.
func PauseLeft(s ledger.Snapshot, t *ledger.Ticket, now time.Time) time.Duration {
	if t.Phase != ledger.TicketPending || t.Reason != string(Outranked) || t.Interruptions == 0 {
		return 0
	}
	pause := firstPause
	for n := int64(1); n < t.Interruptions && pause < lastPause; n++ {
		pause *= 2
	}
	return max(0, min(pause, lastPause)-now.Sub(s.Interrupted(t)))
}

// Notice is the time that a ticket has to let go of its volumes.
const Notice = 30 * time.Second

// YieldNotice is a granted ticket's notice before an earlier user gets its volumes, or it moves (onDrain:
// Move); 0 if its holder can't use them yet.
func YieldNotice(t *ledger.Ticket) time.Duration {
	if t.Phase != ledger.TicketGranted || !t.Type.Yields() && t.OnDrain != ledger.MoveOnDrain || t.SatisfiedSince == 0 {
		return 0
	}
	return Notice
}

// NoticeLeft is the rest of a ticket's notice; 0: none. It exceeds YieldNotice if a controller with another
// clock has asked.
func NoticeLeft(t *ledger.Ticket, now time.Time) time.Duration {
	if t.YieldingSince == 0 {
		return 0
	}
	return max(0, YieldNotice(t)-now.Sub(time.Unix(t.YieldingSince, 0)))
}

// Asked says whether a granted ticket was asked to let go, and still has time.
func Asked(t *ledger.Ticket, now time.Time) bool {
	left := NoticeLeft(t, now)
	return left > 0 && left <= YieldNotice(t)+time.Second // conditions have whole seconds
}

// OnNotice says whether a granted ticket has time to let go, and has not confirmed: nothing is taken from
// it before.
func OnNotice(t *ledger.Ticket, now time.Time) bool {
	return !t.LetsGo && Asked(t, now)
}

// yieldsBy is the end of the notice in seconds since 1970; 0: not asked.
func yieldsBy(t *ledger.Ticket) int64 {
	if t == nil || t.YieldingSince == 0 {
		return 0
	}
	return time.Unix(t.YieldingSince, 0).Add(YieldNotice(t)).Unix()
}

// contends says whether a pending ticket keeps its volumes from others: until it is told why it waits. It
// may wait for months, so this depends only on its own status. The write that changes it touches all its
// volumes: their waiters are checked again.
func contends(t *ledger.Ticket) bool { return t.InDoubt || !t.Waits() }
