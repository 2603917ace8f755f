// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of the sandbox: it starts clusters, runs scenarios, injects faults and
// asks the judge. Results go to standard output (JSON with --json), progress to standard error.
package cli
