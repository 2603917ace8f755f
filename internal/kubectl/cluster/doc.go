// SPDX-License-Identifier: Apache-2.0

// Package cluster is how kubectl moorage reads a cluster.
//
// Reads: the eleven kinds that the ledger is made of, with lists or, to follow
// them, lists and watches; the API server's clock, from its answers. Decides:
// nothing but what to do without: a kind that may not be listed is listed in
// the command's namespace, where it has one, and else left out and named.
// Writes: nothing.
package cluster
