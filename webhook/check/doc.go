// SPDX-License-Identifier: Apache-2.0

// Package check is run by helm test: it checks whether an installed Moorage works.
//
// Reads: the Leases of the components that elect a leader; the CA by which the API server trusts
// the webhook; the webhook's answer to a pod with a volume. Decides: whether each has a leader, and
// the webhook stamps. Writes: nothing.
package check
