// SPDX-License-Identifier: Apache-2.0

// Package supervise runs the child processes of a sandbox cluster.
//
// It reads nothing but its own process table; the caller decides what runs;
// it writes one log file per child. Every child is in a process group of its
// own and asks the kernel to be killed when its parent dies, so that a parent
// that is killed with SIGKILL leaves no process behind. The command line of
// each child is kept, so that one that was killed can be started again.
package supervise
