// SPDX-License-Identifier: Apache-2.0

// Package attach measures attachers alone: how fast one carries out
// VolumeAttachments that all come at once, and what that costs.
//
//	reads    the API server's audit log, the disk service's log, a watch of
//	         VolumeAttachments, and /proc
//	decides  nothing
//	writes   claims, VolumeAttachments and their deletion; a result file
//
// There are no pods, and no controller makes the VolumeAttachments: the
// benchmark does, 64 at a time, spread over the nodes. For moorage-attacher it
// makes them as Moorage's controller does, with finalizer and node ID; for
// external-attacher as kube-controller-manager does, without.
//
// An attach is done when status.attached is true, a detach when the object is
// gone. The clock starts at the first creation, or deletion, that the API server
// received. A run that is not over by its deadline is stopped there: Done says
// how far it came.
package attach
