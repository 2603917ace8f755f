// SPDX-License-Identifier: Apache-2.0

// Package result has the measurements of large clusters: the format of the file, and its rendering.
package result
