// SPDX-License-Identifier: Apache-2.0

package ledger

// Operation is a driver's work on a volume at a user's request.
type Operation uint8

// The operations with a possible place of the volume in a policy.
const (
	OperationSnapshot Operation = 1 << iota // snapshot of a volume or of a group
	OperationClone
	OperationExpansion
)

// AllOperations lists them.
func AllOperations() []Operation {
	return []Operation{OperationSnapshot, OperationClone, OperationExpansion}
}

// TicketType is the type of the tickets that are made for the operation.
func (o Operation) TicketType() TicketType {
	switch o {
	case OperationSnapshot:
		return TypeSnapshot
	case OperationClone:
		return TypeClone
	case OperationExpansion:
		return TypeExpansion
	}
	return ""
}

// String is the operation's name in AttachPolicies.
func (o Operation) String() string { return string(o.TicketType()) }

// Operations is a set of operations.
type Operations uint8

// Has says whether the set contains an operation.
func (o Operations) Has(one Operation) bool { return o&Operations(one) != 0 }

// With is the set with one operation more.
func (o Operations) With(one Operation) Operations { return o | Operations(one) }
