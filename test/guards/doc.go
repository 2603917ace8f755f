// SPDX-License-Identifier: Apache-2.0

// Command guards shows that every scenario fails when the one rule that it
// guards is removed: a scenario that passes without its rule guards nothing.
//
//	go run ./test/guards [--attacher FILE] [GUARD…]
//
// It reads the table in this package and the source files that it names, writes
// changed copies of them to a temporary folder, builds the sandbox with them in
// place of the originals (go build -overlay), and runs the scenario. The work
// tree is not touched. A guard holds when the scenario fails for the reason
// that the table expects: an expectation of its own, or a violation that the
// judge saw.
package main
