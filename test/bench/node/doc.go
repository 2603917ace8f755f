// SPDX-License-Identifier: Apache-2.0

// Package node measures moorage-node's use of a node: at rest, and when a mount changes.
//
//	reads    /proc for the process, the API server's audit log, a watch of NodeMountReports
//	decides  nothing
//	writes   a folder as kubelets have it, mounts, a result file
//
// The process is the released binary, started, probed and scraped as in the chart's DaemonSet. The
// folder and its mounts are real, as a kubelet leaves them. They are in a mount namespace of the
// process' own: the machine has none of them, and none is left when the benchmark is killed. That
// takes Linux, and root.
//
// At rest is a time in which no mount changes: by default five minutes, in which the process looks
// once by itself.
package node
