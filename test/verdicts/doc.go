// SPDX-License-Identifier: Apache-2.0

// Package verdicts is the table of what becomes of a pod at a node: facts, a
// pod, and the answer with its words. The tests of the plugin and of the
// extender run every row, so that the two can't say different things. It is
// data; nothing but tests imports it.
package verdicts
