// SPDX-License-Identifier: Apache-2.0

// Package objects makes the attacher's facts of Kubernetes objects, the CSI requests that they ask
// for, and the patches that change them. It has no client, no state and no clock, and never panics,
// for any content of an object.
//
// In-tree volumes that Kubernetes migrates to CSI are translated first.
package objects
