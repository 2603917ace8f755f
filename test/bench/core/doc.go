// SPDX-License-Identifier: Apache-2.0

// Package core runs the Go benchmarks of the pure core, internal/ledger and internal/rules, and
// of the start of internal/watch in a large cluster, and stores their output as JSON.
//
//	reads    the output of `go test -bench`
//	decides  nothing; a benchmark that fails, fails the command
//	writes   the result file, with the command and the commit
//
// Called by `make bench-core`.
package main
