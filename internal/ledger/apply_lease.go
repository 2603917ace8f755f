// SPDX-License-Identifier: Apache-2.0

package ledger

import "time"

// longUnread is for how long a Lease need not be readable for that to matter: a kubelet that
// comes back renews it within 10 s (a quarter of nodeLeaseDurationSeconds), be it readable or not.
const longUnread = 20 * time.Second

func (e LeaseUnread) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	old := l.facts.nodes.get(e.Node)
	if old == nil || !old.Exists || old.Ready == ReadyTrue || !old.UnreadSince.IsZero() {
		return
	}
	rec := l.node(e.Node)
	if rec.UnreadSince = rec.LeaseRead; rec.NotReady.After(rec.LeaseRead) {
		rec.UnreadSince = rec.NotReady
	}
	if rec.UnreadSince.IsZero() {
		rec.UnreadSince = now
	}
}

func (e NodeLease) apply(l *Ledger, now time.Time, t *Touched) {
	old := l.facts.nodes.get(e.Node)
	if old == nil {
		return
	}
	rec := l.node(e.Node)
	if !rec.RenewedAt.IsZero() && rec.Renewed != e.Renewed && rec.Ready != ReadyTrue {
		rec.Heard = now
		rec.voidFenced()
		l.voidForced(now, t, rec)
	}
	if rec.RenewedAt.IsZero() || rec.Renewed != e.Renewed {
		// Whatever counts since the kubelet was last seen alive begins anew.
		rec.Renewed, rec.RenewedAt = e.Renewed, now
		t.node(e.Node)
		t.Volumes = append(t.Volumes, l.touchable(rec)...)
	}
	rec.LeaseRead = now
	if gap := now.Sub(rec.UnreadSince); !rec.UnreadSince.IsZero() && gap > longUnread {
		rec.Unread, rec.ReadAgain = rec.Unread+gap, now
	}
	rec.UnreadSince = time.Time{}
	l.recount(now, t, rec)
}
