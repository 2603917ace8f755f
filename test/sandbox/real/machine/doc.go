// SPDX-License-Identifier: Apache-2.0

// Package machine is the machine of a node that runs containers: Linux namespaces and a process that holds
// them. Its process is number 1: when it is killed, the kernel ends the machine. NewInsideCommand joins a
// machine.
package machine
