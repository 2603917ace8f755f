// SPDX-License-Identifier: Apache-2.0

package ledger

// The codes of condition Granted that say more to the ledger than why a ticket waits.
const (
	// CodePending: not looked at yet.
	CodePending Code = "Pending"
	// CodeNotGranted: the ticket is about to be granted, or the API server keeps it from being so.
	CodeNotGranted Code = "NotGranted"
	// CodeNoFreeSlot: only slots are missing, and a ticket of a type that doesn't yield keeps slots
	// that come free.
	CodeNoFreeSlot Code = "NoFreeSlot"
)

// Waits says whether a ticket was told why it is not granted. A grant that was sent before fails, since
// that write has changed the ticket's version.
func (k *Ticket) Waits() bool {
	if k.Phase != TicketPending {
		return false
	}
	code := Code(k.Reason)
	return code != "" && code != CodePending && code != CodeNotGranted
}

// KeepsSlots says whether a ticket that is not granted has slots at its node all the same. A ticket in
// doubt may be granted, and a ticket whose grant was sent counts as granted.
func (k *Ticket) KeepsSlots() bool {
	return k.InDoubt || k.Granting || !k.Waits() || k.AwaitsSlots()
}

// AwaitsSlots says whether a ticket that lacks only slots keeps slots that come free, so that a ticket
// for many volumes gets them in time. Types that yield don't.
func (k *Ticket) AwaitsSlots() bool {
	return k.Waits() && Code(k.Reason) == CodeNoFreeSlot && !k.Type.Yields()
}
