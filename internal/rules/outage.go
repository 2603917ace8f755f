// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// silence is a time without a sign of the kubelet of a node that is not Ready.
type silence struct {
	since time.Time     // or the first moment that this process saw
	until time.Time     // its last known moment
	whole bool          // this process saw it begin
	least time.Duration // a length that proves the kubelet dead
	// unread is its part with an unreadable Lease, and again the last end of that: the API server answered
	// no request, so that a returning kubelet could not be heard.
	unread time.Duration
	again  time.Time
	// read is when this process, without the start, first saw the Lease stand still. deaf: the Lease can't
	// be read now.
	read time.Time
	deaf bool
}

// silenceOf is how long this process has seen a not Ready node silent. Ready=Unknown comes from the node
// controller after silence; a deleted Node has no kubelet. Ready=False may come from a living kubelet, or
// be its last write: only a Lease that was read and stands still tells.
func silenceOf(n *ledger.Node, now time.Time) silence {
	if n == nil {
		return silence{until: now}
	}
	quiet := silence{since: later(n.NotReady, n.Heard), until: now, whole: n.SawFail || !n.Heard.IsZero()}
	if !n.Heard.IsZero() || n.Exists && n.Ready == ledger.ReadyFalse {
		quiet.least = leaseGrace // the usual silence between two renewals
	}
	if n.Exists && n.Ready == ledger.ReadyFalse {
		quiet.since, quiet.until = later(quiet.since, n.RenewedAt), n.LeaseRead
	}
	quiet.unread, quiet.again = n.Unread, n.ReadAgain
	if !n.Exists {
		return quiet // its Lease is deleted with it
	}
	if !quiet.whole {
		quiet.read = n.RenewedAt
	}
	if quiet.deaf = !n.UnreadSince.IsZero(); quiet.deaf && n.UnreadSince.Before(quiet.until) {
		quiet.until = n.UnreadSince
	}
	return quiet
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// timing is a rule's time for a volume at a node.
type timing struct {
	rule  string
	limit time.Duration
	silence
	continues bool // an earlier process may have seen more
}

// run is the time's progress: the part that this process saw, or an earlier process's measure of the same
// outage plus the time since it was read.
func (t timing) run(v *ledger.Volume, n *ledger.Node, now time.Time) forcing {
	seen := t.seen()
	if t.continues {
		if earlier, read := v.Earlier(); earlier.Rule == t.rule && sameOutage(earlier, n) {
			seen = max(seen, earlier.Elapsed+t.heardFrom(read))
		}
		if f, found := v.Hold.Fence(n.Name); found && f.Rule == t.rule && sameOutage(outageOf(f), n) {
			seen, t.read = max(seen, t.limit, t.least), time.Time{} // it was over when the last leader wrote it
		}
	}
	return t.progress(seen, now)
}

// seen is the part of the time that this process saw.
func (t timing) seen() time.Duration {
	if t.since.IsZero() {
		return 0
	}
	return t.heardFrom(t.since)
}

// heardFrom counts only the time in which the node could have been heard.
func (t silence) heardFrom(since time.Time) time.Duration {
	silent := t.until.Sub(since)
	if t.again.After(since) {
		silent -= t.unread
	}
	return max(0, silent)
}

// unheard is how long this process may have missed a living kubelet, being new or unable to read the Lease.
func (t silence) unheard() time.Duration {
	left := time.Duration(0)
	if from := later(t.read, t.again); !from.IsZero() {
		left = leaseGrace - t.until.Sub(from)
	}
	if t.deaf {
		left = max(left, minWait)
	}
	return max(0, left)
}

func (t timing) progress(seen time.Duration, now time.Time) forcing {
	t.limit = max(t.limit, t.least)
	f := forcing{
		Rule: t.rule, Elapsed: seen, Limit: t.limit,
		Left: max(0, t.limit-seen, t.unheard()),
		Step: max(minForceStep, (t.limit / forceSteps).Truncate(time.Second)),
	}
	if f.Left > 0 && t.until.Before(now) {
		f.Left = max(f.Left, minWait)
	}
	return f
}

// sameOutage says whether a node has been silent since an earlier process's measure. Without its Lease,
// read in this outage, that is unknown. For a deleted Node it is enough that this process saw no Node with
// another UID (residual risks in docs/internals/invariants.md).
func sameOutage(was ledger.Force, n *ledger.Node) bool {
	switch {
	case n == nil || n.UID == "":
		return was.Since == 0 && (n == nil || was.Node == n.Name)
	case was.Node != n.Name || was.NodeUID != n.UID:
		return false
	case !n.Exists:
		return was.Since == 0 || was.Since == n.ReadySince
	}
	return n.ReadySince != 0 && was.Since == n.ReadySince && !leaseUnread(n) && was.Renewed == n.Renewed
}

// leaseUnread: an earlier process's outage may or may not be the same.
func leaseUnread(n *ledger.Node) bool { return n != nil && n.Exists && n.RenewedAt.IsZero() }

// mayContinue says whether an earlier process's measure may be of the present outage, with the node's Lease
// still unread.
func mayContinue(was *ledger.Force, n *ledger.Node) bool {
	return was != nil && leaseUnread(n) && was.Node == n.Name && !outageOver(*was, n)
}

// outageOver says whether a node is known not to have been silent ever since. Before its Lease is read,
// neither this nor sameOutage need hold.
func outageOver(was ledger.Force, n *ledger.Node) bool {
	switch {
	case ready(n):
		return true
	case n == nil || n.UID == "":
		return false
	case was.NodeUID != n.UID, n.Exists && was.Since != n.ReadySince:
		return true
	case !n.Exists:
		return was.Since != 0 && was.Since != n.ReadySince
	}
	return was.Renewed != 0 && !n.RenewedAt.IsZero() && was.Renewed != n.Renewed
}

// outage is a VolumeHold's record of a rule's time, in whole seconds, for another process.
func outage(v *ledger.Volume, p *ledger.VolumeOnNode, n *ledger.Node, f forcing) *ledger.Force {
	kept := &ledger.Force{Rule: f.Rule, Node: p.Node, Elapsed: f.Elapsed.Truncate(f.Step)}
	if f.over() {
		kept.Elapsed = f.Limit.Truncate(time.Second)
	}
	if n != nil {
		kept.NodeUID = n.UID
	}
	if earlier, _ := v.Earlier(); kept.NodeUID == "" && earlier.Node == p.Node {
		kept.NodeUID = earlier.NodeUID
	}
	if n != nil && n.Exists {
		kept.Since = n.ReadySince
		if kept.Elapsed > 0 { // otherwise a living kubelet would cause a write at each renewal
			kept.Renewed = n.Renewed
		}
	}
	return kept
}
