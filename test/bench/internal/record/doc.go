// SPDX-License-Identifier: Apache-2.0

// Package record keeps what the benchmarks have in common: result files that
// say what made them, and documents that show results. It reads and writes
// files, whole or not at all.
package record
