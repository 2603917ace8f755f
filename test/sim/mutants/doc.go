// SPDX-License-Identifier: Apache-2.0

// Command mutants plays seeds and searches worlds until a rule is broken, and prints the rule. Its test
// builds it once with all changes of testdata/mutants.txt (go build -overlay), and runs it with one change
// on at a time.
package main
