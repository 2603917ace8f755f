// SPDX-License-Identifier: Apache-2.0

// Package controller is moorage-controller: it detaches and
// attaches volumes, publishes what may be mounted, and ends tickets. This package is the
// composition. The stages are ticket, attachment, volumestatus and policy below it.
// Beside them are operation, which makes the tickets that drivers need for snapshots, clones
// and expansions, networkfence, which has a storage cut machines off, and truth, which compares
// what is written in several places.
//
// Reads: everything that package observe observes; the policy that keeps
// others from writing volumesAttached. Decides: who leads; internal/arbiter decides for the
// stages, internal/operation and internal/networkfence for those two. Writes: its Lease. The
// stages write through package execute, operation and networkfence by themselves.
//
// Of several processes one leads, and only that one writes. A lease does not
// stop a process that was paused: so every write has a deadline inside the
// lease, and a new leader waits until the last write of the one before it must be
// over.
package controller
