// SPDX-License-Identifier: Apache-2.0

// Package cloud is the model of a cloud's block storage: disks, instances with slots, and attachments.
// It is pure: Decide looks at a call and the state and returns an action, Apply folds a log entry into
// the state. Waiting, logging and answering are the service's.
//
// It answers as the CSI specification asks and as block storage clouds do:
//
//   - Publish is idempotent; with another access mode or read-only flag than the
//     disk is attached with it answers AlreadyExists.
//   - An exclusive disk that is attached, being attached or being detached
//     elsewhere: FailedPrecondition. A node without a free slot:
//     ResourceExhausted. Unknown disk or node: NotFound. (Lenient: both are
//     attached nevertheless.)
//   - A disk that was made for a zone, at a node elsewhere: InvalidArgument, also in a lenient
//     cloud. A copy may be in another zone than its source.
//   - Unpublish is idempotent; of an unknown disk or node it is a success.
//   - An operation that is going on for the same disk and node: the same call
//     joins it, another one gets Aborted.
//   - Deleting an attached disk: FailedPrecondition.
//   - An operation (snapshot, clone, expansion) that the driver does only while the
//     volume is attached, or only while it is attached nowhere: FailedPrecondition. The
//     first kind comes to nothing when the volume is detached in the middle, or its
//     machine dies: Internal. While the second kind goes on, attaching it: Aborted. An
//     expansion excludes all other operations: Aborted.
//   - A volume that is being copied is not deleted, nor is a snapshot while a disk is
//     made from it: FailedPrecondition. A snapshot needs neither its volume nor the
//     other way round.
//   - A group of snapshots has all of its volumes, from one moment, or none.
//   - Staging needs the device at the node: Internal without.
package cloud
