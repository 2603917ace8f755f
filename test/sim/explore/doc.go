// SPDX-License-Identifier: Apache-2.0

// Package explore searches small worlds exhaustively: every move in each state. rules and protocol decide
// on real ledgers that lag behind the API server; package world executes. States are compared by the order
// of their versions and UIDs, and kept as 64-bit hashes. A state is bad if a rule is broken, or if it does
// not settle without further failures.
package explore
