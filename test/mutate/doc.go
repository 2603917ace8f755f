// SPDX-License-Identifier: Apache-2.0

// Command mutate changes the pure core at one place at a time, everywhere, and runs
// the tests of the changed package. A change that no test notices is a survivor: a
// rule without a test, or code that does nothing.
//
//	go run ./test/mutate -sample 200 -out mutate.txt
//	go run ./test/mutate -only 'internal/arbiter/rank.go'
//
// It negates conditions, takes operands out of && and ||, changes comparisons,
// switches cases off, drops statements, and replaces literals and constants by others
// of their kind. Nothing on disk is touched (go test -overlay). A survivor that is
// none, since the change makes no difference, stands in testdata/explained.txt with
// the reason why.
package main
