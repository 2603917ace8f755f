// SPDX-License-Identifier: Apache-2.0

// Package report says outside what the controller does: metrics, and events on
// pods, claims, holds, tickets, attachments and nodes. There is one constructor
// for each thing that can be said, so that names, labels and wording are in one
// place.
//
// Reads: a snapshot, when metrics are scraped. Decides: nothing. Writes:
// events.
package report
