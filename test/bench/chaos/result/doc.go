// SPDX-License-Identifier: Apache-2.0

// Package result is what the chaos of Moorage and of stock Kubernetes came to,
// as it is stored and as it is shown. It does no I/O.
package result
