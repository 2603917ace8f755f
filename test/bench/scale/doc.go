// SPDX-License-Identifier: Apache-2.0

// Package scale measures Moorage and kube-controller-manager's attach/detach controller in clusters
// of many nodes, which have no machines (package hollow).
//
//	reads    watches of pods, nodes and VolumeAttachments; the API server's audit log; /proc
//	decides  nothing about volumes
//	writes   PersistentVolumes and claims that are bound, pods, taints, evictions; a result file
//
// Real are etcd, kube-apiserver with RBAC and audit, kube-controller-manager, the scheduler,
// Moorage, the attacher, and the disk service that judges each call. The request limits of
// kube-controller-manager, the scheduler and external-attacher are raised in both modes, to keep
// them out of the measurement; Moorage's own are its defaults. kube-controller-manager leads by a
// Lease of the same length as Moorage's controller.
//
// # The load
//
// Each workload is a pod with its volumes. The benchmark plays the controller that makes pods: when
// a pod's object is gone it makes the next pod at once, under another name and with the same
// claims. The first pods are made at their nodes: the controller attaches all volumes in the order
// of their pods. Later pods are scheduled.
//
// # Phases
//
// Build; rest (nothing but heartbeats); quiet (bystanders only); start (the controller is ended in
// peace and started again beside a pod that waits; kube-controller-manager's Lease, which it does
// not give back, is taken away); storm (a zone is switched off, and when its nodes are not ready,
// tainted out of service at once); drain; change (a storm of another zone, in which the controller
// is killed when half of the volumes are elsewhere).
package scale
