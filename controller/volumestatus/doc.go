// SPDX-License-Identifier: Apache-2.0

// Package volumestatus publishes on a pod where its volumes are, and what keeps
// them from being mounted.
//
// Reads: snapshots, and the pod as it is. Decides: arbiter.SafeToMount and
// Explain say what is so; this package, whether it is worth a write. Writes:
// the annotation moorage.dev/volume-status and the condition
// moorage.dev/SafeToMount of a pod, with one patch.
//
// Nothing published ever says more than the node's status, which is what the
// kubelet obeys. A pod that gets its volumes as it should costs one write, when
// the last of them is safe to mount. A pod that does not is told why, when the
// reason is one that lasts, or has lasted for a while. One without a node is told
// what its scheduler says of the nodes, where that is about its volumes.
package volumestatus
