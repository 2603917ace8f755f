// SPDX-License-Identifier: Apache-2.0

// Package image writes container images as OCI archives for nodes without a registry. It reads a folder,
// which becomes the image's only layer. Equal folders make equal archives.
package image
