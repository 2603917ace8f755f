// SPDX-License-Identifier: Apache-2.0

// Package disk is the sandbox's simulated disk service: a cloud's block storage with its CSI driver,
// which can be made to fail and which judges its callers. It imports nothing of Moorage outside this
// folder (a test enforces it): the judge must not share Moorage's code or its mistakes.
//
// This package is the front door; each part is a package of its own:
//
//	diskapi      the vocabulary: calls, log entries, faults, violations
//	cloud        pure: disks, nodes, attachments; what is done with a call
//	writes       pure: what pods have written to the disks
//	faults       pure: which call goes wrong
//	judge        pure: which rule a history of calls breaks
//	journal      the log on disk, from which everything else is replayed
//	service      the service: all of these together, and the admin API
//	csidriver    CSI Identity and Controller over gRPC
//	csinode      CSI Identity and Node over gRPC, registered with a kubelet
//	provisioner  claims to disks, as external-provisioner does, which stands in its
//	             place where the sandbox does operations
//	client       the admin API's client
//
// Only the disk is simulated, not the API: requests come in over CSI gRPC sockets from the same callers
// as in a real cluster.
package disk
