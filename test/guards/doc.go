// SPDX-License-Identifier: Apache-2.0

// Command guards shows that every scenario fails when the rule is removed that
// it guards: a scenario that passes without its rule guards nothing.
//
//	go run ./test/guards [--attacher FILE] [GUARD…]
//
// It builds the sandbox with the breaks of the whole table in it (test/internal/breaks),
// and runs each scenario in a process that breaks its rule. The work tree is not
// touched. A guard holds when the scenario fails for the reason
// that the table expects: an expectation of its own, or a violation that the
// judge saw.
package main
