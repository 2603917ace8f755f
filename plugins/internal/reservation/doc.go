// SPDX-License-Identifier: Apache-2.0

// Package reservation is what happens between the choice of a node for a pod
// and the bind, for everyone who places pods: the plugin and the extender.
//
// Reads: the ledger; single tickets and pods, where what became of a write is
// not known. Decides: the arbiter whether a node may be reserved, the controller
// on the grant. Writes: a VolumeTicket for each reservation, and its deletion
// when the reservation comes to nothing.
//
//	Open ───────▶ Write ─────────▶ Seek ─────────▶ bind ─▶ Look
//	the ledger    the VolumeTicket, the controller's        the bound pod counts
//	counts it     in the background verdict                 by itself
//	                 └────────────────┴── End: the ticket is withdrawn
//
// A bind carries the pod's resource version. Before a ticket goes whose bind may be
// under way, a fence is written into the pod, and that bind fails.
//
// A reservation has no expiry by the clock. Its ticket is named by the pod's
// UID, so that at any time there is one for a pod at most, and an attempt that
// was cut off leaves at most one behind, which the next leader withdraws.
package reservation
