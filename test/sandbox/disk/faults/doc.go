// SPDX-License-Identifier: Apache-2.0

// Package faults decides which call a fault hits. It is pure: the same faults
// and the same calls in the same order give the same hits, which is what lets a
// restarted service replay its log and go on where it was, and what makes a
// seed reproduce a run.
package faults
