// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// TicketType says what a ticket's volumes are needed for. Its priority follows
// from it, so that no requester can choose its own. Pod and Manual tickets are
// made by Moorage's own components; the others are for integrators.
// +kubebuilder:validation:Enum=Restore;Expansion;Manual;Pod;Salvage;ShareManager;Upgrade;Snapshot;Backup;Clone;Rebuild;Eviction;LiveMigration
type TicketType string

// The ticket types, by falling priority.
const (
	TicketRestore       TicketType = "Restore"
	TicketExpansion     TicketType = "Expansion"
	TicketManual        TicketType = "Manual"
	TicketPod           TicketType = "Pod"
	TicketSalvage       TicketType = "Salvage"
	TicketShareManager  TicketType = "ShareManager"
	TicketUpgrade       TicketType = "Upgrade"
	TicketSnapshot      TicketType = "Snapshot"
	TicketBackup        TicketType = "Backup"
	TicketClone         TicketType = "Clone"
	TicketRebuild       TicketType = "Rebuild"
	TicketEviction      TicketType = "Eviction"
	TicketLiveMigration TicketType = "LiveMigration"
)

// TicketTypes returns every ticket type, by falling priority.
func TicketTypes() []TicketType {
	return []TicketType{
		TicketRestore, TicketExpansion, TicketManual,
		TicketPod, TicketSalvage, TicketShareManager, TicketUpgrade,
		TicketSnapshot, TicketBackup, TicketClone, TicketRebuild, TicketEviction, TicketLiveMigration,
	}
}

// Priority returns the type's rank: the higher one is granted first. Tickets of
// equal priority are served by creationTimestamp, then by name. An unknown type
// has priority 0, below every known one.
func (t TicketType) Priority() int32 {
	switch t {
	case TicketRestore, TicketExpansion:
		return 2000
	case TicketManual:
		return 1000
	case TicketPod, TicketSalvage, TicketShareManager, TicketUpgrade:
		return 900
	case TicketSnapshot, TicketBackup, TicketClone, TicketRebuild, TicketEviction, TicketLiveMigration:
		return 800
	default:
		return 0
	}
}

// Yields reports whether a granted ticket of this type gives its exclusive
// volume up to a ticket of Pod's priority or above. From any other type a
// volume is never taken.
func (t TicketType) Yields() bool {
	switch t {
	case TicketSnapshot, TicketBackup, TicketClone, TicketRebuild:
		return true
	default:
		return false
	}
}
