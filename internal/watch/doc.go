// SPDX-License-Identifier: Apache-2.0

// Package watch feeds the ledger from the API server, and is the only cache
// of its objects.
//
// Reads: Pods, PersistentVolumeClaims, PersistentVolumes, StorageClasses,
// CSIDrivers, Nodes, CSINodes, VolumeAttachments, VolumeTickets, VolumeHolds
// and AttachPolicies, with informers; single pods, and pods as a list, with
// consistent reads; every few seconds the Leases of nodes that are not Ready. Decides:
// when enough has been seen to decide on, and which of two answers is the newer one.
// Writes: nothing.
//
// A starting process sees the tickets first, and then the later pods: a reservation ends only when its
// pod counts by itself, so that one of the two is seen at any instant.
//
// Own writes are taken in from the answer (Saw), and not only from the informer. A late answer must not
// bring back an object that is gone: an answer that the informer has already passed is ignored, and an
// answer that the informer passes without ever showing it is taken back.
package watch
