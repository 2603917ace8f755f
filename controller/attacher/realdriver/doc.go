// SPDX-License-Identifier: Apache-2.0

// Package realdriver tests moorage-attacher with the CSI driver for Google Compute Engine's disks, on its
// project's fake cloud. It is a separate module, because the driver needs another Kubernetes.
package realdriver
