// SPDX-License-Identifier: Apache-2.0

// Package attach measures attachers alone: the speed and the cost of VolumeAttachments that all
// come at once.
//
//	reads    the API server's audit log, the disk service's log, a watch of
//	         VolumeAttachments, and /proc
//	decides  nothing
//	writes   claims, VolumeAttachments and their deletion; a result file
//
// There are no pods, and no controller makes the VolumeAttachments: the benchmark makes 64 at a
// time, spread over the nodes. For moorage-attacher they have finalizer and node ID, as from
// Moorage's controller; for external-attacher they have neither, as from kube-controller-manager.
//
// An attach is done when status.attached is true, a detach when the object is gone. The clock
// starts at the first creation, or deletion, that the API server received. A run that exceeds its
// deadline is stopped: Done says how far it came.
package attach
