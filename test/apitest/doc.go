// SPDX-License-Identifier: Apache-2.0

// Package apitest is an API server for tests, in memory: it keeps objects of
// any kind as JSON, counts resource versions, checks preconditions, applies
// patches and serves watches as kube-apiserver does, and records every write.
// What it leaves out (admission, validation, defaults, field management) is
// what the sandbox is for.
package apitest
