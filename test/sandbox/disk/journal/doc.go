// SPDX-License-Identifier: Apache-2.0

// Package journal keeps the disk service's log in an append-only file, one JSON entry a line, so that the
// "cloud" outlives its process. It locks the file. Each entry is one write(2) and is not synced: a killed
// process loses nothing, a machine that loses power may.
package journal
