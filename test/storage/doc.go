// SPDX-License-Identifier: Apache-2.0

// Package storage runs Kubernetes' storage suites (k8s.io/kubernetes/test/e2e/storage) against a cluster.
// The tag storagesuites builds them, since they link the e2e framework; `make test-e2e-storage` runs them
// on the sandbox.
package storage
