// SPDX-License-Identifier: Apache-2.0

// Package facts computes what kubectl moorage shows: of the objects that were
// listed, through the ledger and the arbiter that the controller and the
// scheduler decide with, so that the command and the cluster can't disagree.
//
// It is pure: it has no client and no clock, and never prints. Its results are
// plain structs whose JSON form is the output of -o json; a screen is made of
// them in internal/kubectl/screen.
package facts
