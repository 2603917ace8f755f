// SPDX-License-Identifier: Apache-2.0

// Package volumehold is the kube-scheduler plugin VolumeHold: it places a pod
// only where its volumes can follow, reserves their slots, and lets the pod be
// bound once the controller has granted them. In its profiles it replaces
// NodeVolumeLimits.
//
// Reads: the ledger, one snapshot for each decision; the PodGroups that pods
// name. Decides: arbiter.Fit, arbiter.Rank, arbiter.Reserve, and arbiter.Nowhere
// on who is not tried; the controller decides on the grant. Writes: a
// VolumeTicket in Permit, and its deletion when a reservation comes to nothing;
// the condition PodScheduled of pods that wait for what no new node could lift;
// events on pods.
//
// All profiles of a process share one core (see Factory): the ledger with its
// reservations, the book of pods between Reserve and Bind (plugins/internal/
// reservation), and the requeuer (plugins/internal/requeuer), which the extender has,
// too.
//
//	PreEnqueue ─▶ PreFilter ─▶ Filter ─▶ Score ─▶ Reserve ─▶ Permit ─▶ PreBind ─▶ PostBind
//	would any     one snapshot per decision       assume in  write the  only for   the bound
//	node do?                                      the ledger ticket,    claims     pod counts
//	                                                         wait for   bound      by itself
//	                                                         the grant  just now
//
// A pod that no node would do for, new ones included, is gated in PreEnqueue, and
// the conditionWriter says so on it (docs/decisions/0009). Pods of a PodGroup wait in
// Permit for one another before any of their tickets is written
// (docs/decisions/0010).
//
// A pod that was refused is tried again by the requeuer, when a change that the
// ledger has taken in lifts a refusal; see there for why this is not left to
// queueing hints.
//
// The package does without k8s.io/kubernetes, so that other schedulers can
// build it in.
package volumehold
