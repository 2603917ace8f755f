// SPDX-License-Identifier: Apache-2.0

// Package controller is moorage-controller: it grants tickets, detaches and
// attaches volumes, and publishes what may be mounted. This package is the
// composition; it may serve schedulers that ask for binds without tickets (package
// internal/bind). The stages are ticket, attachment, volumestatus and policy below it, and
// operation, which makes the tickets that drivers need for snapshots, clones and expansions.
//
// Reads: everything that package observe observes; the policy that keeps
// others from writing volumesAttached. Decides: who leads; internal/arbiter
// decides all else. Writes: its Lease; all else goes through package execute.
//
// Of several processes one leads, and only that one writes. A lease does not
// stop a process that was paused: so every write has a deadline inside the
// lease, a new leader waits until the last write of the one before it must be
// over, and writes its epoch into every ticket that is not granted before it
// grants any.
package controller
