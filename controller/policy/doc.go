// SPDX-License-Identifier: Apache-2.0

// Package policy says on each AttachPolicy whether it, or a field of it, has no effect.
//
// Reads: the ledger. Writes: condition InEffect of the AttachPolicy, while it is False, on the version
// that was decided on. A policy without faults is not written.
package policy
