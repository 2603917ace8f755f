// SPDX-License-Identifier: Apache-2.0

// Package report reports the controller's work: metrics, and events on pods, claims, holds,
// tickets, attachments and nodes. There is one constructor for each report: names, labels and
// wording are in one place.
//
// Reads: a snapshot, when metrics are scraped. Decides: nothing. Writes: events.
package report
