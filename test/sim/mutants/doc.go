// SPDX-License-Identifier: Apache-2.0

// Command mutants plays seeds of the simulator and searches worlds of the
// explorer until a rule is broken, and says which. Its test builds it once, with
// all changes of testdata/mutants.txt in the core and nothing on disk touched (go build
// -overlay), and runs it with one change on at a time: a simulator that does not notice
// is none.
package main
