// SPDX-License-Identifier: Apache-2.0

// Package policy says on each AttachPolicy whether it, or a field of it, has no effect. It writes condition
// InEffect while it is False, on the decided version. A policy without faults is not written.
package policy
