// SPDX-License-Identifier: Apache-2.0

// Package write sends the requests that follow from decisions of package protocol: the controller's writes
// of VolumeAttachments, node status, VolumeHolds, VolumeTickets and pod status. It decides only which
// requests of a node go together.
//
// The observer takes in an answer before the caller gets it. The caller lets one volume have one step at a
// node at a time.
package write
