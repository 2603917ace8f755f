// SPDX-License-Identifier: Apache-2.0

package ledger

// TicketType says what a ticket is for; its priority follows from it.
type TicketType string

// The types of tickets. Pod and Manual are made by Moorage, the others by
// integrators.
const (
	TypeRestore       TicketType = "Restore"
	TypeExpansion     TicketType = "Expansion"
	TypeManual        TicketType = "Manual"
	TypePod           TicketType = "Pod"
	TypeSalvage       TicketType = "Salvage"
	TypeShareManager  TicketType = "ShareManager"
	TypeUpgrade       TicketType = "Upgrade"
	TypeSnapshot      TicketType = "Snapshot"
	TypeBackup        TicketType = "Backup"
	TypeClone         TicketType = "Clone"
	TypeRebuild       TicketType = "Rebuild"
	TypeEviction      TicketType = "Eviction"
	TypeLiveMigration TicketType = "LiveMigration"
)

// Priority orders tickets: higher first. The figures are those of Longhorn's
// enhancement 20221024 on attachment tickets. A type that isn't known has
// priority 0.
func (t TicketType) Priority() int {
	switch t {
	case TypeRestore, TypeExpansion:
		return 2000
	case TypeManual:
		return 1000
	case TypePod, TypeSalvage, TypeShareManager, TypeUpgrade:
		return 900
	case TypeSnapshot, TypeBackup, TypeClone, TypeRebuild, TypeEviction, TypeLiveMigration:
		return 800
	}
	return 0
}

// Yields says whether a ticket of this type gives its volume up as soon as
// one of a pod's priority or above wants it.
func (t TicketType) Yields() bool {
	switch t {
	case TypeSnapshot, TypeBackup, TypeClone, TypeRebuild:
		return true
	}
	return false
}
