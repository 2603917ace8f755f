// SPDX-License-Identifier: Apache-2.0

// Package csinode is the node part of the CSI driver: what a DaemonSet runs on
// every node. It serves Identity and Node on <root>/plugins/<driver>/csi.sock
// and registers with the kubelet over a socket in <root>/plugins_registry.
//
//	reads    the kubelet's gRPC requests; its own file of staged volumes
//	decides  nothing about disks: every call is told to the disk service, whose
//	         faults, log and judge so see node and controller calls in one order
//	writes   target folders and files of NodePublish, and the file of what is
//	         staged and published, which outlives the process as mounts outlive
//	         a real one; the same once more in the form of a mount table
//
// # What it does without a device
//
// NodeStage mounts nothing; it notes the volume in the file. NodePublish makes the target, a folder for
// a mounted volume and an empty file for a block one, and NodeUnpublish removes it. A repeated call
// succeeds again.
//
// # Real disks
//
// With Config.Disks a disk that is attached to the node is a loop device, see package block.
// NodeStage makes a file system on a disk that has none, and mounts it; NodePublish binds it, or the
// device of a block volume, to the pod's path; NodeExpand grows the file system; NodeUnpublish and
// NodeUnstage undo it. The file of staged volumes and the writes in place of pods' writes stay as without a
// device: the judge sees the same calls.
//
// # What pods write
//
// While a volume is published to a pod for writing, the plugin writes to it in the pod's name, twice
// when it is published and then every second: a request to the service for all volumes of the node,
// none where there are none. A write is told to the pod first and flushed by the next one, by
// NodeUnpublish of the last pod that writes, and by NodeUnstage. A refused write is an I/O error, and
// the last one until the volume is unpublished. The service keeps the machine's memory for it, that is
// how far its pods have come: it outlives the plugin, and ends with the machine's boot.
//
// # Where it can be stopped
//
// A fault of the service stops any call before its effect (hang), or after it and before the kubelet
// hears of it (hang-done): then the node's own part is done as well. A scenario that waits for the log
// can kill the node at that very step.
//
// # Block volumes
//
// For a block volume a kubelet bind-mounts NodePublish's file and attaches a loop device to it, with
// any mounter (k8s.io/kubernetes pkg/volume/util/volumepathhandler). That needs a privileged kubelet;
// and as it later recognises its mount by the device behind it, and here there is only a file, it
// neither unmounts nor gets past it, and leaves the mount on the machine. Therefore NodeStage refuses
// block volumes, before anything was done, unless Config.Block says that the caller is no kubelet.
// Attaching works for them as for others.
//
// # Reboot
//
// The service counts how often a node was fenced. A plugin that starts and finds a higher count than
// its file has knows that the machine was switched off, and forgets the staged volumes, as mounts are
// gone after a boot.
package csinode
