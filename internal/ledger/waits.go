// SPDX-License-Identifier: Apache-2.0

package ledger

// The codes of condition Granted with a meaning for the ledger.
const (
	// CodePending: not decided on yet.
	CodePending Code = "Pending"
	// CodeNotGranted: the grant is near, or the API server prevents it.
	CodeNotGranted Code = "NotGranted"
	// CodeNoFreeSlot: only slots are missing. A ticket of a type that doesn't yield keeps free slots.
	CodeNoFreeSlot Code = "NoFreeSlot"
)

// Waits says whether a ticket was told why it is not granted. That write makes an earlier grant in flight
// fail.
func (k *Ticket) Waits() bool {
	if k.Phase != TicketPending {
		return false
	}
	code := Code(k.Reason)
	return code != "" && code != CodePending && code != CodeNotGranted
}

// KeepsSlots says whether a pending ticket has slots at its node.
func (k *Ticket) KeepsSlots() bool {
	return k.InDoubt || k.Granting || !k.Waits() || k.AwaitsSlots()
}

// AwaitsSlots says whether a ticket that lacks only slots keeps free ones, so that a ticket for many
// volumes gets them in time. Types that yield don't.
func (k *Ticket) AwaitsSlots() bool {
	return k.Waits() && Code(k.Reason) == CodeNoFreeSlot && !k.Type.Yields()
}
