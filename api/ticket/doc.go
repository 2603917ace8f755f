// SPDX-License-Identifier: Apache-2.0

// Package ticket is for integrators: backup tools, snapshotters, data movers and the controllers of
// storage systems, which need volumes at a node without a pod, or at no node at all. Acquire makes a
// VolumeTicket, or adopts the ticket of an earlier process of the same integrator, and returns when its
// volumes are attached, or detached; the handle says when they are lost, renews the ticket's time and
// ends it. docs/operate/tickets.md has the how-to.
//
// Reads: one VolumeTicket. Decides: nothing. Writes: that ticket's labels, annotations, owner
// and spec, by a creation, server-side apply and merge patches, and its deletion; never its status.
package ticket
