// SPDX-License-Identifier: Apache-2.0

// Package result is what the attachers' benchmark measured: the format of the
// file, and its rendering.
package result
