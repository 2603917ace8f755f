// SPDX-License-Identifier: Apache-2.0

// Package report reads the output of Go benchmarks, stores it with its origin, and renders it.
package report
