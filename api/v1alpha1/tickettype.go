// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// TicketType is the use of a ticket's volumes. Its priority follows from it (docs/operate/policies.md),
// so that no requester can choose its own. Moorage's own command makes Manual tickets; the others are
// for integrators. No pod has a ticket.
// +kubebuilder:validation:Enum=Restore;Expansion;Manual;Salvage;ShareManager;Upgrade;Snapshot;Backup;Clone;Rebuild;Eviction;LiveMigration
type TicketType string

// The ticket types, by falling priority.
const (
	TicketRestore       TicketType = "Restore"
	TicketExpansion     TicketType = "Expansion"
	TicketManual        TicketType = "Manual"
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
