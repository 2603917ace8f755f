// SPDX-License-Identifier: Apache-2.0

// Package verdicts is a table of facts, a pod, and the answer about a node. The tests of the plugin and of
// the extender run every row, so that both agree. It is data for tests only.
package verdicts
