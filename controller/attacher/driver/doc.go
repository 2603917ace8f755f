// SPDX-License-Identifier: Apache-2.0

// Package driver speaks with the CSI driver beside the attacher through a socket. It decides nothing.
package driver
