// SPDX-License-Identifier: Apache-2.0

// Package volumestatus publishes on a pod where its volumes are, and the causes that keep them from
// being mounted.
//
// Reads: snapshots, and the present pod. Decides: rules.SafeToMount and Explain give the status;
// this package decides whether it is worth a write. Writes: the annotation
// moorage.dev/volume-status and the condition moorage.dev/SafeToMount of a pod, with one patch.
//
// A published status never says more than the node's status, which the kubelet obeys. A pod that
// gets its volumes without trouble costs one write, when the last of them is safe to mount. A
// waiting pod gets the cause if the reason is a lasting one, or has lasted for a while. A pod
// without a node gets its scheduler's message about the nodes, if that is about its volumes.
package volumestatus
