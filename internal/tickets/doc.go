// SPDX-License-Identifier: Apache-2.0

// Package tickets decides on the VolumeTickets of tools: it grants them, chooses the nodes of those
// that leave that to Moorage, asks those that yield to let go, and takes grants back. It works in the
// process that places pods, from the same ledger and under the same lock (Config.Order), so that
// nothing is promised twice.
//
// Reads: snapshots; the pods that wait (Waits); through protocol, a claim or a node before a ticket loses
// its grant because there is none. Decides: protocol.Round; rules.Line and Keeps. Writes, through protocol:
// the ticket's status.
//
// A term begins with every pending ticket in doubt, and takes each over by writing
// its epoch into it: a grant of an earlier leader fails then. A ticket that can't be written
// is tried again and again, and keeps its volumes and slots from others meanwhile.
//
// A grant counts from the moment before it is sent, until it is known what came of it.
package tickets
