// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// TicketType says what a ticket's volumes are needed for. Its priority follows
// from it (docs/operate/policies.md), so that no requester can choose its own. Pod
// and Manual tickets are made by Moorage's own components; the others are for
// integrators.
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
