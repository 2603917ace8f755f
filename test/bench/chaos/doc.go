// SPDX-License-Identifier: Apache-2.0

// Package chaos counts and judges scenarios in Moorage and in stock Kubernetes (docs/internals/chaos.md,
// docs/internals/kubelet-staging-hole.md). It writes a result file and the document's results.
package chaos
