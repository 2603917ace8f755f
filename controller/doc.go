// SPDX-License-Identifier: Apache-2.0

// Package controller is moorage-controller: it detaches and attaches volumes, publishes which volumes
// may be mounted, and ends tickets. This package is the composition. The stages are ticket, attachment,
// volumestatus and policy below it. Beside them are operation (tickets for drivers' snapshots, clones
// and expansions), networkfence (has a storage cut machines off), and truth (compares facts that are
// written in several places).
//
// Reads: everything that package watch observes; the policy that keeps others from writing
// volumesAttached. Decides: the leader; internal/rules decides for the stages, internal/operation and
// internal/networkfence for their controllers. Writes: its Lease. The stages write through package
// write; operation and networkfence write themselves.
//
// Of several processes only the leader writes. A lease does not stop a process that was paused: every
// write has a deadline inside the lease, and a new leader waits until the last write of its predecessor
// must be over.
package controller
