// SPDX-License-Identifier: Apache-2.0

// Package write sends the requests that follow from a decision by package protocol, and hands their
// answers back to it. It makes all of the controller's writes of VolumeAttachments, node status,
// VolumeHolds, VolumeTickets and pod status. Schedulers write their Bindings themselves (plugins), and
// an attacher its status of an attachment.
//
// Reads: what the observer knows; consistently, what protocol asks for. Decides:
// nothing but which requests of a node go out together. Writes: all of the above.
//
// An answer goes to the observer before it is handed back, so that the next decision knows it. A task
// with a failed precondition ends with protocol.ErrStale: decide again. Every write has a deadline inside
// the leader's lease.
//
// All methods are safe for parallel use; the caller sees to it that one volume
// has one step at a node at a time.
package write
