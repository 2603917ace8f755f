// SPDX-License-Identifier: Apache-2.0

// Package result is what the benchmark of large clusters measured: the format of the
// file, and its rendering.
package result
