// SPDX-License-Identifier: Apache-2.0

// Package extender applies the rules of the plugin VolumeHold over HTTP, for kube-schedulers that
// can't load a plugin: the verbs filter, prioritize, bind and preempt of a scheduler extender
// (k8s.io/kube-scheduler/extender/v1).
//
// It is part of the scheduler's process, and shares the ledger, the reservations, the binder and
// the Lease with the plugin: a reservation by either counts for both at once.
//
// Reads: requests of schedulers; the ledger, one snapshot for each request; the pods that
// schedulers have promised a node. Decides: rules.Fit, rules.Rank. Writes: the pod's binding,
// with the reservation as an annotation; on a pod that was refused every node, a condition when
// that has changed.
//
//	filter ─▶ prioritize ─▶ bind: reserve ─▶ binding
//	one snapshot, nothing         in the     all, or
//	is left behind                ledger     nothing
//
// A scheduler does not name its chosen node before bind: nothing is reserved before. Two pods may
// be sent to one slot; bind refuses the second, and its next filter says why.
//
// kube-scheduler tries a pod that an extender refused again on any event that it sees. But it sees
// no tickets, holds or attachments, and may see an event before the ledger does. The extender
// therefore touches the condition Placeable of exactly the pods that a change lets in (see
// plugins/internal/requeuer); an update of a pod is an event for that pod alone.
//
// Only the leader answers for pods with volumes, since reservations count in its memory before the
// pods are bound. It writes itself as the only address into the EndpointSlice of a Service without
// a selector. Every process answers for pods without volumes.
package extender
