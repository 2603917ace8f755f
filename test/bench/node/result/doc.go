// SPDX-License-Identifier: Apache-2.0

// Package result has the measurements of moorage-node: the format of the file, and its rendering.
package result
