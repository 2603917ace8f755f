// SPDX-License-Identifier: Apache-2.0

package ledger

// Operation is a driver's work at a user's request.
type Operation uint8

// Operations that a policy may tie to the volume's place.
const (
	OperationSnapshot Operation = 1 << iota // of a volume or a group
	OperationClone
	OperationExpansion
)

// AllOperations lists them.
func AllOperations() []Operation {
	return []Operation{OperationSnapshot, OperationClone, OperationExpansion}
}

// TicketType is the operation's ticket type.
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

// String is the name in AttachPolicies.
func (o Operation) String() string { return string(o.TicketType()) }

// Operations is a set of operations.
type Operations uint8

// Has says whether the set contains an operation.
func (o Operations) Has(one Operation) bool { return o&Operations(one) != 0 }

// With adds an operation.
func (o Operations) With(one Operation) Operations { return o | Operations(one) }
