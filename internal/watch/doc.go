// SPDX-License-Identifier: Apache-2.0

// Package watch feeds the ledger from the API server, and is the only cache of its objects. It decides when
// it has seen enough, and which of two answers is newer.
//
// A starting process sees the tickets before the pods: a reservation ends only when its pod counts, so that
// one of the two is always seen.
package watch
