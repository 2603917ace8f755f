// SPDX-License-Identifier: Apache-2.0

// Package explore searches small worlds exhaustively: two nodes, up to two
// volumes and three pods, leaders one after the other with what the last one
// still has in flight, and failures at any instant. It makes every move in every
// state, until no state is left that has not been seen.
//
// What decides is real: rules.Grant and Plan and the rounds of
// controller/ticket, over real ledgers that lag behind the API server kind by
// kind, woken as package controller wakes them. What executes them is package
// world, with the patches and preconditions of internal/write, one request at
// a time: between any two of them anything else may happen.
//
// States are compared by what matters of them. Versions and UIDs count up for
// ever; what matters is which of those that somebody still knows are the same,
// and which is newer. So the search ends. Of each state only a hash of 64 bits
// is kept, how it was reached, and where its settling moves lead: about 80
// bytes. Workers on all processors share the table of states; each expands the
// newest that it has found first, so that few are held as they are.
//
// A state is bad when package world's judge or Audit says that a rule was broken
// on the way, or when it does not settle: with no further failures, every order
// of the moves that everybody makes by themselves must end, and where it ends
// all that can run must run and nothing may be left over.
package explore
