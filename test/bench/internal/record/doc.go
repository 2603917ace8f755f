// SPDX-License-Identifier: Apache-2.0

// Package record has the benchmarks' common parts: result files with their origin, and documents that show
// results.
package record
