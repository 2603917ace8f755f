// SPDX-License-Identifier: Apache-2.0

// Package tickets decides on the VolumeTickets of tools: it grants them, chooses a node for a ticket that
// leaves it to Moorage, asks yielding tickets to let go, and takes grants back. It runs in the process that
// places pods, on the same ledger and under the same lock (Config.Order), so that nothing is promised
// twice. plugins/volumehold runs the Keeper for a term; plugins/internal/binding notes waiting pods
// (Waits), and has earlier tickets served before a pod; controller/ticket uses its conditions.
//
// Reads: snapshots; the waiting pods (Waits); through protocol, a claim or a node before a ticket loses its
// grant for lack of it. Decides: protocol.Round; rules.Line and Keeps. Writes, through protocol: the
// ticket's status.
//
// A term begins with all pending tickets in doubt, and takes each over by writing its epoch into it: an
// earlier leader's grant fails then. A ticket that can't be written is retried, and keeps its volumes and
// slots from others meanwhile.
//
// A grant counts from just before it is sent until its outcome is known.
package tickets
