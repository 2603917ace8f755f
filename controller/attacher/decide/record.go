// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"cmp"
	"container/list"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// sight is the driver's own statement since the last call there.
type sight uint8

const (
	unseen  sight = iota
	there         // published, it says
	missing       // not published, it says
)

// record is an attachment with this process's knowledge.
type record struct {
	Attachment
	// gone: the object is deleted; the volume may still be at its node.
	gone   bool
	goneAt time.Time

	evidence Evidence
	// atID is where this process has published; if empty, the object tells.
	atID string
	// sentID is a Stamp's node ID that the object has not shown since: its ID is uncertain. Invariant: a
	// publish needs a certain ID.
	sentID string
	sight  sight
	// proved: an unpublish has succeeded, without a publish since.
	proved bool
	// left: a gone attachment left the volume here, and this one answers for it.
	left    bool
	context map[string]string

	// watched: this process saw the object before its deletion, so no other process' unpublish is under
	// way.
	watched bool
	// rejected: the driver definitely refused the last unpublish.
	rejected bool
	// doubted: a call may go on in the driver, from a timeout or another process, until a successful call.
	doubted bool
	// looked: the driver did not know the volume's place.
	looked bool

	running  Action
	lastCall time.Time
	secret   bool

	// failures in a row to a detach or an attach; the last was at failedAt, and the wait ends at until.
	failures        int
	failedDetach    bool
	failedAction    Action
	cause           Reason
	failedAt, until time.Time
	moved           int
	spot            *list.Element
	// eased counts the extra tries for the sake of others' success.
	eased int

	// the shown state, since when, and when a failed write is repeated.
	shown      Reason
	shownSince time.Time
	told       bool
	unshown    int
	showAgain  time.Time
}

func (r *record) maybe() bool { return r.evidence != Absent }

// known says whether the volume is reported at the node.
func (r *record) known() bool { return r.evidence == Published || r.Attached && r.maybe() }

// keeps: the volume is known here, or a gone attachment left it here, perhaps mounted, even if it can't be
// published for this one.
func (r *record) keeps() bool {
	return r.known() || r.left && r.maybe()
}

// volumeID is the driver's node ID of the publish. The CSINode may be another machine's by now.
func (r *record) volumeID() string {
	return cmp.Or(r.atID, r.NodeID, r.TargetID)
}

// place is a node and the driver's ID of its machine.
type place struct{ node, id string }

func (r *record) place() place { return place{r.Node, r.volumeID()} }

func (r *record) with(other *record) bool {
	return r.place() == other.place()
}

// mayStay: the deletion may end without an unpublish, because the volume is wanted again here, and no call
// may still take it away: the driver has definitely refused, or was not asked and reports the volume there.
// After a timeout, or a possible call of another process, only a successful unpublish ends the deletion.
func (r *record) mayStay() bool {
	return r.Wanted && r.watched && !r.doubted && (r.rejected || r.sight == there) &&
		r.NodeID == r.TargetID && r.volumeID() == r.TargetID && r.TargetID != ""
}

func (r *record) succeed() {
	r.failures, r.cause, r.moved, r.eased, r.told = 0, Reason{}, 0, 0, false
}

func (r *record) fail(s Step, why Reason, now time.Time, rules *Rules) {
	if r.failedDetach != s.Detach {
		r.failures = 0
	}
	r.failedDetach, r.failedAction, r.cause, r.failedAt = s.Detach, s.Do, why, now
	if r.failures == 0 || !r.spared(why.Code) {
		r.failures++
	}
	r.until = now.Add(rules.Backoff.After(r.failures, rules.Random()))
	r.secret = false
}

func longerWaiting(a, b *record) int {
	return cmp.Or(a.failedAt.Compare(b.failedAt), strings.Compare(a.UID, b.UID))
}

// spared: a code only means a call too many for a driver that works again.
func (r *record) spared(code codes.Code) bool {
	return r.eased > 0 && r.eased < maxEased && PushesBack(code)
}

func (r *record) waiting(detach bool, now time.Time) time.Duration {
	if r.failures == 0 || r.failedDetach != detach {
		return 0
	}
	return r.until.Sub(now)
}
