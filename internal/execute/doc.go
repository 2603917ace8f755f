// SPDX-License-Identifier: Apache-2.0

// Package execute turns a step into one write to the API, with the
// precondition under which it was decided. It makes all of the controller's
// writes of VolumeAttachments, node status, VolumeHolds, VolumeTickets and pod
// status. Schedulers write the tickets of their reservations themselves
// (plugins), and an attacher what it does with an attachment.
//
// Reads: what the observer knows; a node's pods, and whatever a refused write
// was about, with consistent reads. Decides: nothing but which writes go into
// one request. Writes: all of the above.
//
// Every answer is handed to the observer before a step counts as done, so that
// the next decision knows it. A write whose precondition no longer holds ends
// with ErrStale, after the object has been read again: decide anew. Every
// write has a deadline inside the leader's lease.
//
// All methods are safe for parallel use; the caller sees to it that one volume
// has one step at a node at a time.
package execute
