// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"slices"
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

// contends says whether a ticket that is not granted keeps others from a volume: a pod's
// does, as it is decided on at once. Any other one may ask for months. It does only while
// it could be granted, as far as that does not depend on other tickets which are not:
// somebody who merely asks ranks before it, and contends by itself, or stands in nobody's
// way. What depends on slots is taken from the ticket's own status, which says so.
func (w view) contends(v *ledger.Volume, u ledger.User) bool {
	t := w.snapshot.Ticket(u.Ticket)
	switch {
	case w.onlyLiving:
		return false
	case t.InDoubt || t.Type == ledger.TypePod:
		return true
	}
	if namedInHold(w.snapshot, v, u) {
		return true // its grant may be on its way
	}
	if t.Waits() && rowOf(ledger.Code(t.Reason)).effect != waitsForOthers {
		return false
	}
	n := w.snapshot.Node(t.Node)
	if n == nil || !n.Exists {
		return false
	}
	return w.couldBeGranted(t)
}

// couldBeGranted says whether nothing keeps the volumes of a ticket from it but slots and
// tickets that are not granted.
func (w view) couldBeGranted(t *ledger.Ticket) bool {
	asker := w
	asker.request, asker.node, asker.queue, asker.onlyLiving = TicketRequest(w.snapshot, t), t.Node, nil, true
	return len(asker.fenced()) == 0 && !slices.ContainsFunc(asker.request.Needs, func(need Need) bool {
		if len(need.broken(w.snapshot)) > 0 {
			return true
		}
		if need.Volume.IsZero() || !w.snapshot.AttachRequired(need.Volume.Driver) {
			return false
		}
		return excludes(w.snapshot, w.snapshot.Volume(need.Volume), t.Node) || len(asker.free(need)) > 0
	})
}
