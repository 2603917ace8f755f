// SPDX-License-Identifier: Apache-2.0

// Package realdriver tests moorage-attacher against a foreign driver: the controller service of the
// CSI driver for Google Compute Engine's persistent disks, on that project's own fake of the cloud.
// It is a module of its own, because the driver is made for another Kubernetes.
package realdriver
