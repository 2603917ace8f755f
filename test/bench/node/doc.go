// SPDX-License-Identifier: Apache-2.0

// Package node measures what moorage-node takes at a node: at rest, and when a mount
// changes.
//
//	reads    /proc for the process, the API server's audit log, a watch of NodeVolumes
//	decides  nothing
//	writes   a folder as kubelets have it, mounts, a result file
//
// The process is the released binary, started as the chart's DaemonSet starts it, and
// probed and scraped as there. The folder and its mounts are real, as a kubelet leaves
// them; they are in a mount namespace of the process' own, so that the machine has none
// of them, and none is left when the benchmark is killed. That takes Linux, and root.
//
// At rest is a time in which no mount changes. It has a timer, as long as what the process
// looks at by itself: once, unless told otherwise.
package node
