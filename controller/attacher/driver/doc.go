// SPDX-License-Identifier: Apache-2.0

// Package driver is the CSI driver beside the attacher, behind a socket.
//
// Reads: what the driver says of itself and of its volumes. Decides: nothing.
// Writes: ControllerPublishVolume and ControllerUnpublishVolume, as told.
package driver
