// SPDX-License-Identifier: Apache-2.0

// Package karpenter asks Karpenter's own scheduling simulation what it makes of pods that
// Moorage refuses. It is a module of its own: Karpenter's dependencies would move Kubernetes'.
//
//	reads    nothing but what the tests make
//	decides  nothing: Karpenter's Provisioner does, with its kwok provider
//	writes   objects of a fake API server in memory (controller-runtime's)
//
// What the fake leaves out: validation, defaults, and whatever runs in a cluster; the objects
// are made as a cluster has them. Nothing is launched: a test looks at what would be.
package karpenter
