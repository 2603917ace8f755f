// SPDX-License-Identifier: Apache-2.0

package ledger

import "time"

func (e AttachSent) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	if p := l.world.volumes.get(e.Volume).Place(e.Node); p != nil && (p.Left || l.occupied(p)) {
		l.at(now, t, e.Volume, e.Node, func(p *Place) { p.Sent = true })
	}
}

func (e AttachSettled) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	if p := l.world.volumes.get(e.Volume).Place(e.Node); p != nil && p.Sent {
		l.at(now, t, e.Volume, e.Node, func(p *Place) { p.Sent = false })
	}
}
