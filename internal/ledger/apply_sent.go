// SPDX-License-Identifier: Apache-2.0

package ledger

import "time"

func (e AttachSent) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	if p := l.facts.volumes.get(e.Volume).NodeVolume(e.Node); p != nil && (p.Left || l.occupied(p)) {
		l.changeNodeVolume(now, t, e.Volume, e.Node, func(p *NodeVolume) { p.Sent = true })
	}
}

func (e AttachResolved) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	if p := l.facts.volumes.get(e.Volume).NodeVolume(e.Node); p != nil && p.Sent {
		l.changeNodeVolume(now, t, e.Volume, e.Node, func(p *NodeVolume) { p.Sent = false })
	}
}
