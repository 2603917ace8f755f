// SPDX-License-Identifier: Apache-2.0

// Package node is moorage-node: a process on each node that publishes the node's CSI volumes as a
// NodeMountReport. It reads the kubelet's folder, the mount table and sysfs; internal/nodemounts decides.
// It writes only changed content, on the version that it has read.
package node
