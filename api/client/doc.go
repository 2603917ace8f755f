// SPDX-License-Identifier: Apache-2.0

// Package client is the typed access to the kinds of api/v1alpha1 that the
// controller, the scheduler and the command line share: one REST client and
// shared informers, on the generic clients of client-go instead of generated
// code.
//
// Reads: VolumeTickets, VolumeHolds and AttachPolicies. Decides: nothing. Writes: its caller's objects.
package client
