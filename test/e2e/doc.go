// SPDX-License-Identifier: Apache-2.0

// Package e2e holds the scenarios of the sandbox: a story per file, with its outcome in every mode it
// supports. They are the end-to-end tests and the scenes of the demo. A scenario waits for conditions and
// never for a time. The runner cleans up and asks for leftovers, violations and denied calls.
package e2e
