// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"cmp"
	"container/list"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// sight is the driver's own statement of a volume at a node, since the last call there.
type sight uint8

const (
	unseen  sight = iota
	there         // published, it says
	missing       // not published, it says
)

// record is an attachment with this process's own knowledge.
type record struct {
	Attachment
	// gone: the object is deleted, though the volume may still be at its node.
	gone   bool
	goneAt time.Time

	evidence Evidence
	// atID is where this process has published; empty if the object has to say it.
	atID string
	// sentID is the node ID that a Stamp has sent and that was not seen on the object since: the
	// object's ID is not certain. Invariant: a publish is called only at a certain ID of the
	// object.
	sentID string
	sight  sight
	// proved: an unpublish has succeeded, and no publish was called since.
	proved bool
	// left: a gone attachment, which this one answers for, has left the volume here.
	left bool
	// context is the publish context of the success that evidence stands for.
	context map[string]string

	// watched: this process saw the object before its deletion: no unpublish of another process can
	// be under way.
	watched bool
	// rejected: the driver answered the last unpublish with a definite no.
	rejected bool
	// doubted: a call may still be under way in the driver, after its timeout or from another process.
	// Only a successful call ends the doubt.
	doubted bool
	// looked: the driver was asked where the volume is, and did not know.
	looked bool

	// under way, or 0.
	running  Action
	lastCall time.Time
	// secret: the Secret for the next call has been read.
	secret bool

	// failures in a row on the way to a detach, or to an attach; the last was at
	// failedAt and is waited for until.
	failures        int
	failedDetach    bool
	failedAction    Action
	cause           Reason
	failedAt, until time.Time
	moved           int
	// spot is where it waits for the driver to take calls again, see press.
	spot *list.Element
	// eased is how often it was tried again for the sake of others' success.
	eased int

	// the state to show on the object, since when, and when a failed write is repeated.
	shown      Reason
	shownSince time.Time
	told       bool
	unshown    int
	showAgain  time.Time
}

// maybe says whether the volume may be at the attachment's node.
func (r *record) maybe() bool { return r.evidence != Absent }

// known says whether the volume is reported at the attachment's node.
func (r *record) known() bool { return r.evidence == Published || r.Attached && r.maybe() }

// keeps says whether the volume is known to be at the attachment's node, or a gone attachment left
// it there: it may be mounted there, even if it can't be published for this one.
func (r *record) keeps() bool {
	return r.known() || r.left && r.maybe()
}

// volumeID is the driver's ID of the node where the volume may be: the ID of its publish. A CSINode of
// the same name may be another machine's by now.
func (r *record) volumeID() string {
	return cmp.Or(r.atID, r.NodeID, r.TargetID)
}

// place is a node, and the driver's ID of its machine.
type place struct{ node, id string }

// place is where the attachment has the volume, or would have it.
func (r *record) place() place { return place{r.Node, r.volumeID()} }

// with says whether two attachments of a volume have one place: the same node and machine.
func (r *record) with(other *record) bool {
	return r.place() == other.place()
}

// mayStay says whether the deletion may end without an unpublish, because the volume is wanted
// again at the same node. No call that could still take it away may be under way: the driver has
// definitely refused, or was not asked and reports the volume there. After a timeout, or a possible
// call of another process, only a successful unpublish ends the deletion.
func (r *record) mayStay() bool {
	return r.Wanted && r.watched && !r.doubted && (r.rejected || r.sight == there) &&
		r.NodeID == r.TargetID && r.volumeID() == r.TargetID && r.TargetID != ""
}

func (r *record) succeed() {
	r.failures, r.cause, r.moved, r.eased, r.told = 0, Reason{}, 0, 0, false
}

// fail counts a failure and says when to try again.
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

// longerWaiting orders failed attachments: the longest wait first.
func longerWaiting(a, b *record) int {
	return cmp.Or(a.failedAt.Compare(b.failedAt), strings.Compare(a.UID, b.UID))
}

// spared says whether a code only means one call too many for a driver that takes calls again.
func (r *record) spared(code codes.Code) bool {
	return r.eased > 0 && r.eased < maxEased && PushesBack(code)
}

// waiting is how long failures on a way still hold it back.
func (r *record) waiting(detach bool, now time.Time) time.Duration {
	if r.failures == 0 || r.failedDetach != detach {
		return 0
	}
	return r.until.Sub(now)
}
