// SPDX-License-Identifier: Apache-2.0

// Package volumestatus publishes on a pod where its volumes are, and why they can't be mounted: annotation
// moorage.dev/volume-status and condition moorage.dev/SafeToMount, in one patch. A status never says more
// than the node's status, which the kubelet obeys. A pod without trouble costs one write.
package volumestatus
