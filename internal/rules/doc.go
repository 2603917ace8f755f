// SPDX-License-Identifier: Apache-2.0

// Package rules holds the rules: which node may have which volume, and what
// to do next about it. Every decision of Moorage is one of its functions, from
// a snapshot of the facts to a verdict or a plan. They have no memory, read no
// clock, and do no I/O; whoever calls them executes what they say.
//
// A decision looks at what is, never at what was done last. That is what makes
// restarts, retries and lost events harmless.
//
// The package imports the standard library and internal/ledger only. All of
// its functions are safe for parallel use.
package rules
