// SPDX-License-Identifier: Apache-2.0

package ledger

import "time"

// earlierOutage is an earlier process's measure, and its reading.
type earlierOutage struct {
	outage Outage
	read   time.Time
}

// EarlierOutage returns how long the node had been gone at the ticket's first sight there, and that time,
// or Complete's, if later.
func (s Snapshot) EarlierOutage(t *Ticket) (Outage, time.Time) {
	read := t.gone.read
	if complete := s.facts.complete; complete.After(read) {
		read = complete
	}
	return t.gone.outage, read
}

// readOutage keeps the status' outage at the ticket's first sight or new node.
func (k *Ticket) readOutage(old *Ticket, now time.Time) {
	if old != nil && old.UID == k.UID && old.Node == k.Node {
		k.gone = old.gone
		return
	}
	k.gone = earlierOutage{outage: k.NodeGone, read: now}
}
