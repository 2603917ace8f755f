// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of the sandbox: it starts clusters, runs scenarios, injects faults
// and asks the judge. It reads flags and the control sockets of running clusters, decides nothing, and
// writes results to standard output (JSON with --json) and progress to standard error.
package cli
