// SPDX-License-Identifier: Apache-2.0

// Package truth compares places of the API with each other: nodes' volumesAttached, VolumeAttachments,
// VolumeHolds, VolumeTickets and the pods' annotations. The stages keep them alike, event by event; a
// difference shows a fault, or another controller at work.
//
// Reads: the ledger, and pods' annotations from the caches. Decides: the audit and the plans of
// internal/rules; work that is due for two rounds in a row is overdue. Writes: metrics, log lines,
// and an event on the wrong object. It repairs nothing itself: a difference is handed to its stage.
package truth
