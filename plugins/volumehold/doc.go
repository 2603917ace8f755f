// SPDX-License-Identifier: Apache-2.0

// Package volumehold is the kube-scheduler plugin VolumeHold: it places a pod only where its volumes can
// follow, and counts them there until the pod is bound. In its profiles it replaces NodeVolumeLimits.
// plugins/scheduler and other schedulers build it in through Factory.
//
// Reads: the ledger, one snapshot for each decision; the pods' PodGroups. Decides: rules.Fit, rules.Rank,
// and rules.Nowhere for pods that are not tried. Writes: Bindings with reservations; the condition
// PodScheduled of pods that no new node would help; events on pods.
//
// All profiles of a process share one core (see Factory): the ledger with its reservations, and the
// requeuer (plugins/internal/requeuer). The process's extender shares the ledger, the reservations and the
// binder, and has its own requeuer.
//
//	PreEnqueue ─▶ PreFilter ─▶ Filter ─▶ Score ─▶ Reserve ─▶ Permit ─▶ Bind ─▶ PostBind
//	would any     one snapshot per decision       count in   PodGroups node and reser-  the bound pod
//	node do?                                      the ledger only      vation at once   counts by itself
//
// A pod that no node fits, new ones included, is gated in PreEnqueue, and the conditionWriter reports it on
// the pod (docs/decisions/0009). Pods of a PodGroup wait in Permit for each other (docs/decisions/0010).
//
// The requeuer has a refused pod tried again when a change in the ledger lifts a refusal; its package says
// why queueing hints are not enough.
//
// The package does not import k8s.io/kubernetes, so that other schedulers can build it in.
package volumehold
