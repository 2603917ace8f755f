// SPDX-License-Identifier: Apache-2.0

// Command scheduler runs kube-scheduler's own benchmark with kube-scheduler's profile and with
// Moorage's, one after the other on the same machine, and stores the measurements of each.
//
//	reads    what command perf stores of each run
//	decides  in which order the runs come
//	writes   the result file, and the table in docs/internals/benchmarks-scheduler.md
//
// Each run is a process of its own, with its own etcd and API server; both binaries are built
// first. Called by `make bench-scheduler`.
package main
