// SPDX-License-Identifier: Apache-2.0

// Package report reports the controller's work: metrics, and events on pods, claims, holds, tickets,
// attachments and nodes. It reads a snapshot at each scrape, decides nothing, and writes events.
package report
