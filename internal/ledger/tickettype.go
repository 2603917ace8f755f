// SPDX-License-Identifier: Apache-2.0

package ledger

// TicketType is a ticket's purpose; its priority follows from it.
type TicketType string

// The types of tickets. Moorage makes Manual tickets by the command line, and tickets for drivers'
// operations; integrators and people make the rest. No pod has a ticket.
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

// typeOfPods is the type of earlier releases' tickets for pods. These claim nothing: a bound pod claims its
// volumes itself.
const typeOfPods TicketType = "Pod"

// typeRow holds all facts of a type. Rows have no field names, so that a row without a column does not
// compile.
type typeRow struct {
	kind     TicketType
	priority int    // the higher one is granted first
	gives    gives  // when it gives its volume up
	beside   beside // whether it has its volume at a second node
	ends     ends   // how it must end
	scope    scope  // where its use must be permitted
}

// gives says when a granted ticket gives its exclusive volume up.
type gives uint8

const (
	keeps  gives = iota + 1
	yields       // for a user of a pod's priority or above, after time to let go
)

// beside is how many nodes may have a ticket's exclusive volume.
type beside uint8

const (
	alone  beside = iota + 1
	second        // a second one, if the policy permits live migration
)

// ends is what must end a ticket, so that it does not hold its slots forever.
type ends uint8

const (
	anyhow ends = iota + 1 // an owner, or a time
	byTime                 // a time: others in its way can only wait
)

// scope says where the use of a type has to be permitted: the verb use on the
// resource tickettypes.moorage.dev, by the type's name.
type scope uint8

const (
	// inNamespace: a role in the ticket's namespace is enough, so that tenants can have it. These types
	// never outrank a pod.
	inNamespace scope = iota + 1
	// everywhere: only a cluster-wide role is enough. In their namespace, tenants may have roles with
	// wildcards.
	everywhere
)

// typeTable has a row for each type, by falling priority. The priorities are Longhorn's (enhancement
// 20221024 on attachment tickets), except Manual: with Longhorn's 1000 a tenant's ticket would outrank
// other tenants' pods. A ticket that must not be interrupted, such as a copy, keeps its volume, and must
// have an end.
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

// PodPriority is a pod's rank among tickets: types of this priority neither outrank a pod nor are outranked
// by it.
const PodPriority = 900

// row is the row of a type. An unknown type comes after all others.
func (t TicketType) row() typeRow {
	for i := range typeTable {
		if typeTable[i].kind == t {
			return typeTable[i]
		}
	}
	return typeRow{t, 0, keeps, alone, anyhow, everywhere}
}

// TicketTypes lists every type, by falling priority.
func TicketTypes() []TicketType {
	types := make([]TicketType, 0, len(typeTable))
	for i := range typeTable {
		types = append(types, typeTable[i].kind)
	}
	return types
}

// Priority orders tickets: higher first. A type that isn't known has priority 0.
func (t TicketType) Priority() int { return t.row().priority }

// Yields says whether a ticket of this type gives its volume up for a user of a pod's priority or above.
// Other types never lose a volume.
func (t TicketType) Yields() bool { return t.row().gives == yields }

// SharesVolume says whether a ticket of this type may have an exclusive volume at a
// second node beside the first.
func (t TicketType) SharesVolume() bool { return t.row().beside == second }

// Timed says whether a ticket of this type needs spec.ttlSeconds.
func (t TicketType) Timed() bool { return t.row().ends == byTime }

// Namespaced says whether a role in its namespace is enough to use a ticket of this
// type. Any other type has to be permitted for the whole cluster.
func (t TicketType) Namespaced() bool { return t.row().scope == inNamespace }
