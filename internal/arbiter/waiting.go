// SPDX-License-Identifier: Apache-2.0

package arbiter

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

// contends says whether a ticket that is not granted keeps others from its volumes: until it
// is told why it waits. A pod's is never told that; any other one may ask for months. So this
// depends on nothing but the ticket's own status. It costs nothing to know, whatever else the
// ticket asks for, and the write that changes it touches all volumes of the ticket, so that
// whoever waits for one of them is looked at again.
func contends(t *ledger.Ticket) bool { return t.InDoubt || !t.Waits() }
