// SPDX-License-Identifier: Apache-2.0

// Package supervise runs the child processes of a sandbox cluster, with one log file for each. The kernel
// kills each child when its parent dies. A killed child can be started again.
package supervise
