// SPDX-License-Identifier: Apache-2.0

// Package chaos counts and judges scenarios in Moorage and in stock Kubernetes, and keeps the
// outcome: docs/internals/chaos.md and docs/internals/kubelet-staging-hole.md. Each run has a
// cluster of its own. It reads the scenario's outcome, decides nothing, and writes a result file
// and the document's results.
package chaos
