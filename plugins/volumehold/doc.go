// SPDX-License-Identifier: Apache-2.0

// Package volumehold is the kube-scheduler plugin VolumeHold: it places a pod only where its
// volumes can follow, and counts them there until the pod is bound. In its profiles it replaces
// NodeVolumeLimits.
//
// Reads: the ledger, one snapshot for each decision; the PodGroups that pods name. Decides:
// rules.Fit and rules.Rank, and rules.Nowhere on who is not tried. Writes: the request that
// binds a pod, with its reservation; the condition PodScheduled of pods that wait for what no new
// node could lift; events on pods.
//
// All profiles of a process share one core (see Factory): the ledger with its reservations, and the
// requeuer (plugins/internal/requeuer). The extender of the process shares the ledger, the
// reservations and the binder, and has a requeuer of its own.
//
//	PreEnqueue ─▶ PreFilter ─▶ Filter ─▶ Score ─▶ Reserve ─▶ Permit ─▶ Bind ─▶ PostBind
//	would any     one snapshot per decision       count in   PodGroups node and reser-  the bound pod
//	node do?                                      the ledger only      vation at once   counts by itself
//
// A pod that no node would do for, new ones included, is gated in PreEnqueue, and
// the conditionWriter says so on it (docs/decisions/0009). Pods of a PodGroup wait in
// Permit for one another (docs/decisions/0010).
//
// A pod that was refused is tried again by the requeuer, when a change that the
// ledger has taken in lifts a refusal; see there for why this is not left to
// queueing hints.
//
// The package does without k8s.io/kubernetes, so that other schedulers can
// build it in.
package volumehold
