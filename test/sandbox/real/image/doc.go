// SPDX-License-Identifier: Apache-2.0

// Package image writes container images as archives, for nodes that run containers and reach no
// registry. An archive is an OCI image layout: a container runtime imports it under the names
// that it has.
//
// Reads: a folder that becomes the image's only layer. Decides: nothing. Writes: the archive, equal
// for equal folders.
package image
