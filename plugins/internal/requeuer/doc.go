// SPDX-License-Identifier: Apache-2.0

// Package requeuer has a refused pod tried again when a change lifts a refusal: a verdict on the
// pod, or on the pod at some node, was not Allow by the facts of the last attempt, and is now. It
// does the same when a change makes an eviction help: the pod now fits a node without the pods
// there that it outranks, and did not before. Such changes are a raised limit, a registered driver,
// a policy, a freed slot or volume, and a pod of a lower rank in the place of another pod. A
// PodDisruptionBudget never forbids a preemption, and a pod's priority and preemptionPolicy never
// change.
//
// The scheduling queue alone can't do this, because queue and ledger consume the same events
// separately. The queue may move a pod before the ledger has the event: the pod would be tried too
// early, be refused by the old facts, and then sleep, for the event has passed. kube-scheduler
// chains its own caches before its handlers for this reason (eventhandlers.go, DeviceClass); a
// plugin or an extender can't. The requeuer hears of a change after the ledger, and compares two
// snapshots: exactly the pods that the change concerns are tried again. Config.Wake decides how to
// wake a pod that is being tried. If another plugin kept a woken pod from the queue at that moment,
// the pod is woken again.
//
// When nodes have opened for several pods, only as many pods are woken as there is room for, in
// their scheduler's order. A woken pod counts as being at that node until it has a node, is
// refused, or Config.Turn is over; then the next pod in line is woken, if there is still room. A
// freed slot thus costs about one attempt, however many pods wait.
//
// A look costs something for each pod that waits, and nothing for pods with a node. When thousands
// of pods wait, the pauses between looks are so long that looks use a tenth of a core.
//
// Reads: the ledger. Decides: the arbiter. Writes: nothing itself.
package requeuer
