// SPDX-License-Identifier: Apache-2.0

// Command mutate changes the pure core at one place at a time, everywhere, and runs
// the tests that may notice. A change that no test notices is a survivor: a rule
// without a test, or code that does nothing.
//
//	go run ./test/mutate -sample 200 -out mutate.txt
//	go run ./test/mutate -only 'internal/rules/nodescore.go'
//	go run ./test/mutate -only '^controller/attacher/decide' -seeds 0 -stages 'decide|TestScenarios'
//	go run ./test/mutate -survivors mutate.txt -seeds 2000
//
// It negates conditions, takes operands out of && and ||, changes comparisons,
// switches cases off, drops statements, and replaces literals and constants by others
// of their kind. Statements in the head of a loop, an if or a switch stay.
//
// All changes are compiled into the tests at once, each behind a switch, and a variable of the
// environment says which one is on (go test -overlay: nothing on disk is touched). The few that can't
// be switched, such as values of constants, are compiled one by one; mutants that do not compile are
// not counted.
//
// A run of each test binary with all changes off shows which places it reaches and how long it takes. A
// mutant is tried by the tests of its own package, then by others that reach it, the quickest first,
// and last by seeds of the simulator and worlds of the explorer, until a test fails. All run at the
// lowest priority, one after another unless -parallel is set. A sample is drawn without putting back,
// from the seed that is printed; drawn again, it is the same.
//
// A survivor that is none, since the change makes no difference, stands in testdata/explained.txt with
// the reason why; FUNCTION: * stands for a whole function, such as a function that calculates a hash.
package main
