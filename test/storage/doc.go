// SPDX-License-Identifier: Apache-2.0

// Package storage runs Kubernetes' own storage suites (k8s.io/kubernetes/test/e2e/storage) against a
// cluster. The tests are built only with the tag storagesuites, since they link the whole e2e
// framework; `make test-e2e-storage` builds and runs them on the sandbox.
package storage
