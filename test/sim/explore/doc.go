// SPDX-License-Identifier: Apache-2.0

// Package explore searches small worlds exhaustively: two nodes, up to two volumes and three pods,
// successive leaders with the last one's requests in flight, and failures at any instant. It makes each
// move in each state, until no unseen state is left.
//
// The decisions are real: rules.Grant and Plan and protocol.Round, on real ledgers that lag behind the API
// server kind by kind, woken as package controller wakes them. Package world executes them, with
// internal/protocol's patches and preconditions, one request at a time: anything may happen between two of
// them.
//
// States are compared by their relevant facts. Versions and UIDs count up forever; only the equality and
// order of known ones matter, so that the search ends. Of each state only a 64-bit hash is kept, with its
// origin and the targets of its settling moves: about 80 bytes. Workers on all processors share the table
// of states; each expands its newest state first, so that few full states are held.
//
// A state is bad if package world's judge or Audit finds a broken rule on the way, or if it does not
// settle: without further failures, each order of the processes' own moves must end, and at the end all
// pods that can run must run, and nothing may be left over.
package explore
