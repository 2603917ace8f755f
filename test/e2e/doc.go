// SPDX-License-Identifier: Apache-2.0

// Package e2e holds the scenarios that run on the sandbox: one story per file,
// each asserting its outcome in every mode it supports. The same scenarios are
// the demo's scenes and the end-to-end tests.
//
// A scenario acts through the API server and faults, waits for conditions and
// never for a time, and leaves cleaning up and the last questions (leftovers,
// violations, denied calls) to the runner.
package e2e
