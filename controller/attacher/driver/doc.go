// SPDX-License-Identifier: Apache-2.0

// Package driver is the CSI driver beside the attacher, behind a socket.
//
// Reads: the driver's description of itself and of its volumes. Decides: nothing. Writes:
// ControllerPublishVolume and ControllerUnpublishVolume, as told.
package driver
