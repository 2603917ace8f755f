// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// How long a ticket that has lost its volume to somebody who ranks before is not granted
// again: the first time firstPause, twice as long with each further interruption, lastPause
// at most. Without that, a ticket and pods that come and go would take the volume from
// each other each time, and each pod would wait for a detach.
const (
	firstPause = 10 * time.Second
	lastPause  = 5 * time.Minute
)

// PauseLeft is how long an interrupted ticket is still not granted again, as this process
// has seen the interruption; 0 when it may be, or was not interrupted.
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

// YieldNotice is for how long a granted ticket is asked to let go of its volumes before they are
// taken for somebody who ranks before, or it is put at another node (onDrain: Move): the longest
// time of their policies; 0 where nobody can use them yet.
func YieldNotice(s ledger.Snapshot, t *ledger.Ticket) time.Duration {
	if t.Phase != ledger.TicketGranted || !t.Type.Yields() && t.OnDrain != ledger.MoveOnDrain || t.SatisfiedSince == 0 {
		return 0
	}
	notice := time.Duration(0)
	for _, id := range s.TicketAt(t.ID) {
		if v := s.Volume(id); v != nil {
			notice = max(notice, yieldNotice(policyOf(s, v)))
		}
	}
	return notice
}

// NoticeLeft is how much of its time to let go is left to a ticket that was asked to; 0: nothing,
// or it is not asked. It is more than YieldNotice where a controller with another clock has
// asked it.
func NoticeLeft(s ledger.Snapshot, t *ledger.Ticket, now time.Time) time.Duration {
	if t.YieldingSince == 0 {
		return 0
	}
	return max(0, YieldNotice(s, t)-now.Sub(time.Unix(t.YieldingSince, 0)))
}

// Asked says whether a granted ticket has been asked to let go of its volumes, and the time for
// that is not over.
func Asked(s ledger.Snapshot, t *ledger.Ticket, now time.Time) bool {
	left := NoticeLeft(s, t, now)
	return left > 0 && left <= YieldNotice(s, t)+time.Second // a condition's time has whole seconds
}

// OnNotice says whether a granted ticket has been asked to let go of its volumes, has time for
// that, and has not said that it has: nothing is taken from it before.
func OnNotice(s ledger.Snapshot, t *ledger.Ticket, now time.Time) bool {
	return !t.LetsGo && Asked(s, t, now)
}

// yieldsBy is until when a ticket has been asked to let go of its volumes, in seconds since 1970;
// 0: it is not asked to.
func yieldsBy(s ledger.Snapshot, t *ledger.Ticket) int64 {
	if t == nil || t.YieldingSince == 0 {
		return 0
	}
	return time.Unix(t.YieldingSince, 0).Add(YieldNotice(s, t)).Unix()
}

// contends says whether a ticket that is not granted keeps others from its volumes: until it
// is told why it waits. It may ask for months. So this depends on nothing but the ticket's own status. It costs nothing to know, whatever else the
// ticket asks for, and the write that changes it touches all volumes of the ticket, so that
// whoever waits for one of them is looked at again.
func contends(t *ledger.Ticket) bool { return t.InDoubt || !t.Waits() }
