// SPDX-License-Identifier: Apache-2.0

// Package hollow has nodes without machines, many in one process: each does the volume work of a
// kubelet and its CSI node plugin, and nothing else.
//
//	reads    watches of pods and nodes that all hollow nodes share; live reads of a
//	         Node and of VolumeAttachments before a mount
//	decides  what the kubelet decides: when a volume is in use, may be mounted, and is
//	         not in use any more (books.go)
//	writes   Nodes, CSINodes, Leases, Node status, Pod status, the end of pods; calls
//	         of the node plugin to the disk service
//
// Each node asks the API server as itself (system:node:NAME): the node authorizer, NodeRestriction,
// priority and fairness, and the audit log see many nodes, though the connections are shared.
//
// # What they do as a kubelet does
//
//   - A node registers itself with its CSINode, renews its Lease four times in its
//     duration, and reports its status every five minutes.
//   - A volume that a pod needs is in volumesInUse at the next tick of the status
//     interval, and counts as reported only once that write was answered.
//   - A volume that is reported, and is in volumesAttached of the Node as it is read for the
//     purpose, is staged when its VolumeAttachment, read for the purpose, is attached and not
//     being deleted. The disk service, as the judge, is told with the publish context.
//   - A pod is Running when all its volumes are staged: a write of its status when it comes,
//     and one when it runs.
//   - A pod that is being deleted ends at once: its volumes are unstaged unless another pod
//     uses them, its status is written, and then it is deleted. A pod that is gone without
//     that ends in the same way, without writes.
//   - A volume that is unstaged leaves volumesInUse at the next tick.
//   - A node that is switched off is silent; a node that boots has nothing staged,
//     another bootID, and an empty volumesInUse.
//
// # What they leave out
//
// Containers, images, probes and their time; mounts. The kubelet's own watches (of its pods, its
// Node, CSIDrivers, Secrets): the API server serves two watches for all nodes instead of some for
// each. Its reads of claims and PersistentVolumes, and the second and third read of each
// VolumeAttachment. NodePublish: staging stands for it. Its back-off: a failed mount is tried again
// at the next tick. A passed function finds volumes, without reads of claims. One node does one
// thing after the other.
package hollow
