// SPDX-License-Identifier: Apache-2.0

// Package sim plays Moorage against a hostile cluster. The rules of internal/ledger, internal/rules,
// controller/ticket and internal/protocol are real; everything around them is simulated, in one goroutine
// without I/O. The dice choose among the actions that processes offer, faults included. Package world
// judges each action, and judgeEnd the run at rest. A failure prints its seed and a shortened list of
// actions.
package sim
