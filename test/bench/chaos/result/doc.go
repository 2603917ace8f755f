// SPDX-License-Identifier: Apache-2.0

// Package result has the outcome of the chaos of Moorage and of stock Kubernetes, in its stored and
// its shown form. It does no I/O.
package result
