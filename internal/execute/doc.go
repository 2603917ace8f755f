// SPDX-License-Identifier: Apache-2.0

// Package execute sends the requests that package flow says follow from a
// decision, and hands their answers back to it. It makes all of the controller's
// writes of VolumeAttachments, node status, VolumeHolds, VolumeTickets and pod
// status. Schedulers write the tickets of their reservations themselves
// (plugins), and an attacher what it does with an attachment.
//
// Reads: what the observer knows; consistently, what flow asks for. Decides:
// nothing but which requests of a node go out together. Writes: all of the above.
//
// What an answer shows is handed to the observer before it is handed back, so that
// the next decision knows it. A task whose precondition no longer holds ends with
// flow.ErrStale: decide anew. Every write has a deadline inside the leader's lease.
//
// All methods are safe for parallel use; the caller sees to it that one volume
// has one step at a node at a time.
package execute
