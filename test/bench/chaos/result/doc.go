// SPDX-License-Identifier: Apache-2.0

// Package result has the outcome of chaos in Moorage and in stock Kubernetes, stored and shown. It does no
// I/O.
package result
