// SPDX-License-Identifier: Apache-2.0

// Package result is what kube-scheduler's benchmark measured with its own
// profile and with Moorage's: the format of the file, and its rendering.
package result
