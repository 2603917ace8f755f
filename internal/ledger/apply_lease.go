// SPDX-License-Identifier: Apache-2.0

package ledger

import "time"

// LongUnread is the time from which an unread Lease matters: a returning kubelet renews it within 10 s (a
// quarter of nodeLeaseDurationSeconds), readable or not.
const LongUnread = 20 * time.Second

func (e LeaseUnread) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	old := l.facts.nodes.get(e.Node)
	if old == nil || !old.Exists || old.Ready == ReadyTrue {
		return
	}
	rec := l.node(e.Node)
	switch {
	case e.Refused: // a kubelet would be heard
		rec.readable(now)
		rec.Renewed, rec.RenewedAt, rec.LeaseRead = 0, time.Time{}, time.Time{}
	case !rec.UnreadSince.IsZero():
	case rec.NotReady.After(rec.LeaseRead):
		rec.UnreadSince = rec.NotReady
	case rec.LeaseRead.IsZero():
		rec.UnreadSince = now
	default:
		rec.UnreadSince = rec.LeaseRead
	}
}

// readable uses wall clock time: another clock stands still during a suspension.
func (n *Node) readable(now time.Time) {
	if gap := now.Round(0).Sub(n.UnreadSince.Round(0)); !n.UnreadSince.IsZero() && gap > LongUnread {
		n.Unread, n.ReadAgain = n.Unread+gap, now
	}
	n.UnreadSince = time.Time{}
}

func (e NodeLease) apply(l *Ledger, now time.Time, t *Touched) {
	old := l.facts.nodes.get(e.Node)
	if old == nil {
		return
	}
	rec := l.node(e.Node)
	rec.readable(now)
	if !rec.RenewedAt.IsZero() && rec.Renewed != e.Renewed && rec.Ready != ReadyTrue {
		rec.heard(now)
		rec.voidFenced()
		l.voidForced(now, t, rec)
	}
	if rec.RenewedAt.IsZero() || rec.Renewed != e.Renewed {
		// All times since the last sign of life restart.
		rec.Renewed, rec.RenewedAt = e.Renewed, now
		t.node(e.Node)
		t.Volumes = append(t.Volumes, l.touchable(rec)...)
	}
	rec.LeaseRead = now
	l.recount(now, t, rec)
}

// heard notes a write by a not Ready node's kubelet: earlier silence no longer counts.
func (n *Node) heard(at time.Time) {
	n.Heard = at
	if !n.ReadAgain.After(at) {
		n.Unread, n.ReadAgain = 0, time.Time{}
	}
}
