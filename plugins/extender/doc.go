// SPDX-License-Identifier: Apache-2.0

// Package extender applies the rules of the plugin VolumeHold over HTTP, for
// kube-schedulers that can't load a plugin: the verbs filter, prioritize, bind
// and preempt of a scheduler extender (k8s.io/kube-scheduler/extender/v1).
//
// Reads: requests of schedulers; the ledger, one snapshot for each request; the
// pods that schedulers have promised a node.
// Decides: arbiter.Fit, arbiter.Rank. Writes: the pod's binding, with the
// reservation as an annotation; on a pod that was refused every node, a
// condition when that has changed.
//
//	filter ─▶ prioritize ─▶ bind: reserve ─▶ binding
//	one snapshot, nothing         in the     all, or
//	is left behind                ledger     nothing
//
// A scheduler does not tell an extender which node it has chosen before bind, so
// that nothing is reserved before. Two pods may be sent to one slot; bind
// refuses the second, and its next filter says why.
//
// kube-scheduler tries a pod that an extender refused again on any event that it
// sees, but it sees no tickets, holds or attachments, and it may see an event
// before the ledger does. So the extender touches the condition Placeable of
// just those pods that a change lets in (see plugins/internal/requeuer); an update
// of a pod is an event for that pod alone.
//
// One process at a time serves, the holder of a Lease, since reservations count
// in its memory before the pods are bound. It begins by reading what an earlier
// one has bound. Others stand by; where a Service without a selector is named,
// they are ready, and the leader writes into its EndpointSlice that it alone is
// asked.
package extender
