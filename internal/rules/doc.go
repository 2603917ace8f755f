// SPDX-License-Identifier: Apache-2.0

// Package rules holds the rules: which node may have which volume, and the next step for it. Each decision
// of Moorage is a function here, from a snapshot of the facts to a verdict or a plan. The functions have no
// memory, read no clock and do no I/O; their callers (protocol, tickets, the scheduler plugin,
// kubectl-moorage) act on the result.
//
// A decision depends on the present facts, never on the last action. That makes restarts, retries and lost
// events harmless.
//
// The places that decide:
//
//	may a pod go to a node        fit.go: Arbiter.Fit, Arbiter.Admissible
//	is a node full                limit.go: evaluation.full
//	who gets a volume first       request.go: CompareRequests; attachslots.go: compareBound; queue.go: Queue
//	is a ticket granted           grant.go: Arbiter.Grant
//	who holds a volume next       planhold.go: holdPlan.holder
//	may a volume be attached      planattach.go: attachPlan.mayCreate
//	may a volume be detached      safety.go: Arbiter.safeToDetach
//	does a dead node's volume move  force.go: force; evidence.go
//	why does it wait              reasontable.go
//
// The package imports only the standard library and internal/ledger. All functions are safe for parallel
// use.
package rules
