// SPDX-License-Identifier: Apache-2.0

// Package objects makes the attacher's facts, CSI requests and patches from Kubernetes objects. It has no
// client, state or clock, and never panics. It translates migrated in-tree volumes to CSI first.
package objects
