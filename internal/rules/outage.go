// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// silence is a time in which nothing was heard of the kubelet of a node that is not
// Ready.
type silence struct {
	since time.Time     // when this process saw it begin, or came to see it
	until time.Time     // up to when that is known
	whole bool          // this process has seen it begin
	least time.Duration // how long it has to be to show that the kubelet does not live
	// unread is how much of it nobody could read the node's Lease, and again is when that ended last. In that
	// time the API server answered nobody, so that a kubelet that had come back could not be heard either.
	unread time.Duration
	again  time.Time
	// read is since when this process sees the Lease stand still, where it has not seen the silence begin: the API
	// server may have been away before it. deaf says that nobody can read the Lease now.
	read time.Time
	deaf bool
}

// silenceOf is for how long a node that is not Ready has been silent, as this
// process has seen. Ready=Unknown is the node controller's word, after nothing was
// heard, and a Node that is gone has nobody to write it. Ready=False may be the word
// of a kubelet that lives, with a broken network plugin for one, or its last: only a
// Lease that was read, and stands still, tells.
func silenceOf(n *ledger.Node, now time.Time) silence {
	if n == nil {
		return silence{until: now}
	}
	quiet := silence{since: later(n.NotReady, n.Heard), until: now, whole: n.SawFail || !n.Heard.IsZero()}
	if !n.Heard.IsZero() || n.Exists && n.Ready == ledger.ReadyFalse {
		quiet.least = leaseGrace // between two renewals every kubelet is silent
	}
	if n.Exists && n.Ready == ledger.ReadyFalse {
		quiet.since, quiet.until = later(quiet.since, n.RenewedAt), n.LeaseRead
	}
	quiet.unread, quiet.again = n.Unread, n.ReadAgain
	if !n.Exists {
		return quiet // its Lease has gone with it
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
	continues bool // an earlier process may have seen more of it
}

// run says how far the time has come: what this process has seen of it or, where it
// has not seen the beginning, what an earlier process had measured of the same outage,
// plus the time since this one has read that.
func (t timing) run(v *ledger.Volume, n *ledger.Node, now time.Time) forcing {
	seen := t.seen()
	if t.continues {
		if earlier, read := v.Earlier(); earlier.Rule == t.rule && sameOutage(earlier, n) {
			seen = max(seen, earlier.Elapsed+t.heardFrom(read))
		}
		if f, found := v.Hold.Fence(n.Name); found && f.Rule == t.rule && sameOutage(outageOf(f), n) {
			seen, t.read = max(seen, t.limit, t.least), time.Time{} // it was over when the leader before wrote that
		}
	}
	return t.progress(seen, now)
}

// seen is how much of the time this process has seen.
func (t timing) seen() time.Duration {
	if t.since.IsZero() {
		return 0
	}
	return t.heardFrom(t.since)
}

// heardFrom is for how long the node was silent since a time, and would have been heard.
func (t silence) heardFrom(since time.Time) time.Duration {
	silent := t.until.Sub(since)
	if t.again.After(since) {
		silent -= t.unread
	}
	return max(0, silent)
}

// unheard is for how long a kubelet that lives may not have been heard yet, by this process: it has not seen the
// Lease stand still for long enough, be it that it began lately, that nobody could read the Lease, or that nobody can.
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

// progress says how far the time has come, of which so much is over.
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

// sameOutage says whether a node has been silent ever since an earlier process
// measured for how long. Of a Node that was there, its UID, the time of its condition
// Ready and its Lease tell, as soon as that is read in this outage. Of one that was gone already, that this process has seen
// no Node of another UID: nobody can tell whether there was one before this process
// began, see the residual risks in docs/internals/invariants.md.
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

// leaseUnread says whether nobody has read the Lease of a node that is not Ready since
// it is not: whether an earlier process has measured the same outage is not known yet.
func leaseUnread(n *ledger.Node) bool { return n != nil && n.Exists && n.RenewedAt.IsZero() }

// mayContinue says whether what an earlier process has measured may be of the outage that
// goes on, and nobody knows that yet, since the node's Lease is to be read.
func mayContinue(was *ledger.Force, n *ledger.Node) bool {
	return was != nil && leaseUnread(n) && was.Node == n.Name && !outageOver(*was, n)
}

// outageOver says whether a node is known not to have been silent ever since. It may
// be neither, as long as nobody has read its Lease.
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

// outage is what a VolumeHold keeps of a rule's time, so that another process goes on
// from there, in whole seconds, as the API has it.
func outage(v *ledger.Volume, p *ledger.NodeVolume, n *ledger.Node, f forcing) *ledger.Force {
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
		if kept.Elapsed > 0 { // else a kubelet that lives would have it written at every renewal
			kept.Renewed = n.Renewed
		}
	}
	return kept
}
