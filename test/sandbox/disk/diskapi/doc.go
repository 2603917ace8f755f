// SPDX-License-Identifier: Apache-2.0

// Package diskapi is the vocabulary of the simulated disk service: the calls it
// takes, the log it keeps, the faults it can be given and the violations its
// judge finds. Service, client, judge and node plugin share these types and
// nothing else; they travel as JSON over the admin API and lie as JSON lines in
// the journal.
//
// # One log, three entries a call
//
// A call leaves up to three entries, joined by the arrival's sequence number:
//
//	arrived    the request reached the service; nothing has happened yet
//	applied    the state of the cloud changed (absent if nothing changed)
//	returned   the caller was answered, or gave up waiting
//
// They are apart because the distance between them is where attach bugs live: an attach whose caller
// timed out may be applied long after it returned. Actions of people (fence a node, set a fault) are a
// fourth kind, noted. The state of the cloud, the faults' counters and the judge's verdicts are all
// folds over this one sequence, so that a killed service comes back with exactly its state.
package diskapi
