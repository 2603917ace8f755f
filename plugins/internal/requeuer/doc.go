// SPDX-License-Identifier: Apache-2.0

// Package requeuer wakes a refused pod when a change lifts a refusal, or makes an eviction help.
//
// The scheduling queue alone can't do this: it may move a pod before the ledger has the event. The requeuer
// hears of a change after the ledger, and compares two snapshots.
//
// It wakes only as many pods as there is room for.
package requeuer
