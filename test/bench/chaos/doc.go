// SPDX-License-Identifier: Apache-2.0

// Package chaos puts Moorage and stock Kubernetes through the same chaos and
// keeps what came of it: docs/internals/chaos.md. It runs the scenario of that name on a
// cluster of its own for each mode. It reads the scenario's outcome, decides
// nothing, and writes a result file and the document's results.
package chaos
