// SPDX-License-Identifier: Apache-2.0

// Package requeuer has a refused pod tried again when a change lifts a refusal:
// when a verdict on the pod, or on the pod at some node, was not Allow by the
// facts that the last attempt saw, and is now. It does the same when a change makes an
// eviction help: the pod fits a node without the pods there that it outranks, and would not
// have fitted without them before. A raised limit, a registered driver, a policy, a freed
// slot or volume do so, and a pod of a lower rank in the place of another pod. A PodDisruptionBudget never forbids a preemption,
// and a pod's priority and preemptionPolicy never change.
//
// This is not left to the scheduling queue, because queue and ledger are
// different consumers of the same events. The queue may move a pod before the
// ledger has taken the event in: the pod would be tried too early, be refused by
// the old facts, and then sleep, for the event has passed. kube-scheduler chains
// its own caches before its handlers for this reason (eventhandlers.go,
// DeviceClass); a plugin or an extender can't. The requeuer hears of a change after
// the ledger, and compares two snapshots, so that exactly the pods that the
// change concerns are tried again. How a pod that is just being tried is told so
// is up to Config.Wake. One that is woken and not tried, because another plugin
// kept it from the queue at that moment, is woken again.
//
// Of the pods for which a node has opened only as many are woken as there is room for,
// in the order in which their scheduler would try them. A woken pod counts as being at
// that node until it has one, is refused, or Config.Turn is over; then the next in line
// is woken, if there is still room. A freed slot so costs about one attempt, however
// many pods wait.
//
// A look costs something for each pod that waits, and nothing for pods that have a
// node: with thousands that wait, looks are as far apart as it takes to use a
// tenth of a core.
//
// Reads: the ledger. Decides: the arbiter. Writes: nothing itself.
package requeuer
