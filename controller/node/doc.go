// SPDX-License-Identifier: Apache-2.0

// Package node is moorage-node: on each node one process that publishes what the node
// itself has of CSI volumes, as a NodeVolumes of its name.
//
// Reads: the kubelet's folder, the mount table, sysfs, its own NodeVolumes, and before a repair its
// Node. Decides: which order to unstage a volume it refuses; internal/nodevolumes decides its findings.
// Writes: its own NodeVolumes, on the version that it has read, and only changed content. By an order
// it calls the driver's NodeUnstageVolume, and removes the kubelet's records of that volume.
package node
