// SPDX-License-Identifier: Apache-2.0

// Package truth compares what the API says in one place with what it says in
// another: nodes' volumesAttached, VolumeAttachments, VolumeHolds, VolumeTickets
// and the pods' annotations. The stages keep them alike, event by event; this is
// how one learns that they don't, or that somebody else is at work.
//
// Reads: the ledger, and pods' annotations from the caches. Decides: the audit
// and the plans of internal/arbiter; what is to be done for two rounds in a row
// is overdue. Writes: metrics, log lines, and an event on the object that is
// wrong. It repairs nothing itself: what differs is handed to the stage whose
// work it is.
package truth
