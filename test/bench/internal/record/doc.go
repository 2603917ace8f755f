// SPDX-License-Identifier: Apache-2.0

// Package record has the benchmarks' common parts: result files with their origin, and documents
// that show results. It reads and writes whole files.
package record
