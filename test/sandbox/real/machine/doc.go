// SPDX-License-Identifier: Apache-2.0

// Package machine is the machine of a node that runs containers: a set of Linux namespaces (processes,
// mounts, network, host name, IPC) with a process that holds them.
//
// The machine's own process is number 1 in it. When that is killed, the kernel kills every
// other process of the machine, and with the last of them its mounts and its network are gone:
// that is how its power goes off, and how nothing is left when the sandbox is killed. A
// process that joins a machine (NewInsideCommand) is a process of the sandbox as any other: it can
// be killed, paused and started again alone.
//
// A machine has a network of its own, with nothing but a loopback device. It
// forwards some addresses of the host, such as the API server's, and exposes some of its own at
// the host, such as its kubelet's. Pods get their
// addresses from CNI plugins in it.
//
// Reads: nothing. Decides: nothing. Writes: a socket for processes that join.
package machine
