// SPDX-License-Identifier: Apache-2.0

package ledger

import "time"

// earlierOutage is an earlier process's measure of an outage of a ticket's node, and when this one has read
// it.
type earlierOutage struct {
	outage Outage
	read   time.Time
}

// EarlierOutage returns how long a ticket's node had been gone when this process first saw the ticket
// at that node, and when that was, or when it reached Complete, if later.
func (s Snapshot) EarlierOutage(t *Ticket) (Outage, time.Time) {
	read := t.gone.read
	if complete := s.facts.complete; complete.After(read) {
		read = complete
	}
	return t.gone.outage, read
}

// readOutage keeps the outage in a ticket's status when the ticket is first seen, or has another node.
func (k *Ticket) readOutage(old *Ticket, now time.Time) {
	if old != nil && old.UID == k.UID && old.Node == k.Node {
		k.gone = old.gone
		return
	}
	k.gone = earlierOutage{outage: k.NodeGone, read: now}
}
