// SPDX-License-Identifier: Apache-2.0

// Package node is moorage-node: on each node one process that publishes what the node
// itself has of CSI volumes, as a NodeMountReport of its name.
//
// Reads: the kubelet's folder, the mount table, sysfs, its own NodeMountReport. Decides: nothing;
// internal/nodemounts decides its findings. Writes: its own NodeMountReport, on the version that it has
// read, and only changed content.
package node
