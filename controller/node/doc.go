// SPDX-License-Identifier: Apache-2.0

// Package node is moorage-node: on each node one process that publishes what the node
// itself has of CSI volumes, as a NodeVolumes of its name.
//
// Reads: the kubelet's folder, the mount table, sysfs, its own NodeVolumes. Decides: nothing;
// internal/nodevolumes decides its findings. Writes: its own NodeVolumes, on the version that it has
// read, and only changed content.
package node
