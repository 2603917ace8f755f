// SPDX-License-Identifier: Apache-2.0

// Package drain is kubectl moorage drain-plan, which says where the volumes of a node could
// go, and kubectl moorage drain, which evicts its pods as there is room for their volumes
// elsewhere.
//
// Reads: everything the ledger is made of, and Leases. Decides: when each pod is evicted; the
// arbiter says whether there is room. Writes: drain sets spec.unschedulable of the node, and
// creates Evictions of pods, each with the pod's UID as precondition.
package drain
