// SPDX-License-Identifier: Apache-2.0

package ledger

// TicketType is a ticket's purpose and decides its priority.
type TicketType string

// Moorage makes Manual tickets by the command line and tickets for drivers' operations. No pod has a
// ticket.
const (
	TypeRestore       TicketType = "Restore"
	TypeExpansion     TicketType = "Expansion"
	TypeManual        TicketType = "Manual"
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

// typeOfPods is from earlier releases and claims nothing: a bound pod claims its volumes itself.
const typeOfPods TicketType = "Pod"

// typeRow has no field names, so that a row without a column does not compile.
type typeRow struct {
	kind     TicketType
	priority int    // highest first
	gives    gives  // when it gives its volume up
	beside   beside // whether it has its volume at a second node
	ends     ends   // how it must end
	scope    scope  // where its use must be permitted
}

// gives says when a granted ticket gives up its exclusive volume.
type gives uint8

const (
	keeps  gives = iota + 1
	yields       // to a pod's priority or above, after time to let go
)

// beside is how many nodes may have a ticket's exclusive volume.
type beside uint8

const (
	alone  beside = iota + 1
	second        // needs the policy's live migration
)

// ends must end a ticket, so that it does not hold slots forever.
type ends uint8

const (
	anyhow ends = iota + 1 // owner or time
	byTime                 // others can only wait for it
)

// scope is where a type must be permitted: the verb use on tickettypes.moorage.dev, by the type's name.
type scope uint8

const (
	// inNamespace: a namespaced role is enough, also for tenants. These types never outrank a pod.
	inNamespace scope = iota + 1
	// everywhere: only a cluster-wide role is enough, since tenants may have wildcard roles in their
	// namespace.
	everywhere
)

// typeTable is by falling priority. The priorities are Longhorn's (enhancement 20221024 on attachment
// tickets), except Manual: with Longhorn's 1000 it would outrank other tenants' pods. An uninterruptible
// ticket, like a copy, keeps its volume and must have an end.
var typeTable = [...]typeRow{
	{TypeRestore, 2000, keeps, alone, byTime, everywhere},
	{TypeExpansion, 2000, keeps, alone, byTime, everywhere},
	{TypeManual, 900, keeps, alone, anyhow, inNamespace},
	{TypeSalvage, 900, keeps, alone, anyhow, everywhere},
	{TypeShareManager, 900, keeps, alone, anyhow, everywhere},
	{TypeUpgrade, 900, keeps, alone, anyhow, everywhere},
	{TypeSnapshot, 800, yields, alone, anyhow, inNamespace},
	{TypeBackup, 800, yields, alone, anyhow, inNamespace},
	{TypeClone, 800, keeps, alone, byTime, everywhere},
	{TypeRebuild, 800, keeps, alone, byTime, everywhere},
	{TypeEviction, 800, keeps, alone, anyhow, everywhere},
	{TypeLiveMigration, 800, keeps, second, anyhow, everywhere},
}

// PodPriority is a pod's rank among tickets: neither outranks an equal.
const PodPriority = 900

// row puts an unknown type last.
func (t TicketType) row() typeRow {
	for i := range typeTable {
		if typeTable[i].kind == t {
			return typeTable[i]
		}
	}
	return typeRow{t, 0, keeps, alone, anyhow, everywhere}
}

// TicketTypes lists the types by falling priority.
func TicketTypes() []TicketType {
	types := make([]TicketType, 0, len(typeTable))
	for i := range typeTable {
		types = append(types, typeTable[i].kind)
	}
	return types
}

// Priority orders tickets, highest first; unknown types have 0.
func (t TicketType) Priority() int { return t.row().priority }

// Yields: the type gives its volume up to a user of a pod's priority or above. Others never lose a volume.
func (t TicketType) Yields() bool { return t.row().gives == yields }

// SharesVolume: the type may have an exclusive volume at a second node.
func (t TicketType) SharesVolume() bool { return t.row().beside == second }

// Timed: the type needs spec.ttlSeconds.
func (t TicketType) Timed() bool { return t.row().ends == byTime }

// Namespaced: a role in its namespace is enough. Other types need a cluster-wide permission.
func (t TicketType) Namespaced() bool { return t.row().scope == inNamespace }
