// SPDX-License-Identifier: Apache-2.0

package ledger

import "time"

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
	l.recount(now, t, rec)
}
