// SPDX-License-Identifier: Apache-2.0

// Package explore searches a small world exhaustively: two nodes, two volumes,
// three pods, two leaders one after the other with what the first still has in
// flight, one failure and one crash at any instant. It tries every move in every
// state, until no state is left that has not been seen.
//
// What decides is real: arbiter.Grant and Plan and the rounds of
// controller/ticket, over real ledgers that lag behind the API server kind by
// kind. What executes them is package world, with the patches and preconditions
// of internal/execute, one request at a time: between any two of them anything
// else may happen. Schedulers choose any node, for no reason.
//
// States are compared by what matters of them. Versions and UIDs count up for
// ever; what matters is which of those that somebody still knows are the same,
// and which is newer. So the search ends.
//
// A state is bad when package world's judge says that a rule was broken on the
// way, or when it does not settle: with no further failures, from every state,
// everybody doing what they do ends where all that can run runs and nothing is
// left over.
package explore
