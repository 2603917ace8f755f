// SPDX-License-Identifier: Apache-2.0

// Package result has the measurements of kube-scheduler's benchmark with its own profile and with
// Moorage's: the format of the file, and its rendering.
package result
