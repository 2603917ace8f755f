// SPDX-License-Identifier: Apache-2.0

// Package nodemounts reads a node's own facts about CSI volumes: its kubelet's records below its
// folder (usually /var/lib/kubelet), the mounts there, and the kernel's file systems of volumes.
//
// It reads folders, vol_data.json, the text of mountinfo and sysfs, writes nothing, calls no driver,
// and never opens or asks about a mounted volume, which may not answer. Folders are listed by their own
// entries, and a path of the mount table is touched only on the way to a folder that is read, such as a
// disk of its own for pods. An unreadable part is Unknown, with the reason, and never taken for unused.
// It keeps a bounded amount, and a bound leaves open only the part that it cuts off.
//
// The layout is Kubernetes 1.37.1's, pkg/volume/csi:
//
//	plugins/kubernetes.io/csi/<driver>/<sha256 of the handle>/vol_data.json, globalmount
//	    csi_attacher.go:598 makeDeviceMountPath; before 1.24 csi/pv/<PersistentVolume>/
//	pods/<pod UID>/volumes/kubernetes.io~csi/<PersistentVolume>/vol_data.json, mount
//	    csi_mounter.go:85 GetPath, csi_mounter.go:279 SetUpAt
//	pods/<pod UID>/volume-subpaths/<PersistentVolume>/<container>/<number>
//	    subpath_linux.go:185 getSubpathBindTarget, of pkg/volume/util/subpath
//	plugins/kubernetes.io/csi/volumeDevices/<PersistentVolume>/data/vol_data.json, dev/<pod UID>
//	    csi_util.go:111 to 129
//	plugins/kubernetes.io/csi/volumeDevices/staging/<PersistentVolume>
//	plugins/kubernetes.io/csi/volumeDevices/publish/<PersistentVolume>/<pod UID>
//	    csi_block.go:113 GetStagingPath, csi_block.go:131 getPublishPath
//	pods/<pod UID>/volumeDevices/kubernetes.io~csi/<PersistentVolume>
//	    csi_block.go:137 GetPodDeviceMapPath
//
// A starting kubelet rebuilds its mounts from the folders of pods alone
// (pkg/kubelet/volumemanager/reconciler/reconstruct_common.go:194). Afterwards no kubelet remembers a
// staged volume that no such folder names: it is Forgotten.
package nodemounts
