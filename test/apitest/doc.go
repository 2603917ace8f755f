// SPDX-License-Identifier: Apache-2.0

// Package apitest is an API server in memory: it counts resource versions, checks preconditions, applies
// patches, serves watches and records writes. It omits admission, validation, defaults and field
// management; the sandbox tests these.
package apitest
