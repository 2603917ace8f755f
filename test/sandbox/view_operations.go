// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SnapshotResource is how VolumeSnapshots are read and written dynamically.
func SnapshotResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}
}

// SnapshotContentResource is how VolumeSnapshotContents are read dynamically.
func SnapshotContentResource() schema.GroupVersionResource {
	return SnapshotResource().GroupVersion().WithResource("volumesnapshotcontents")
}

// GroupSnapshotResource is how VolumeGroupSnapshots are read and written dynamically.
func GroupSnapshotResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "groupsnapshot.storage.k8s.io", Version: "v1", Resource: "volumegroupsnapshots"}
}

// Snapshots lists the VolumeSnapshots of a namespace; nothing without operations.
func (v *View) Snapshots(namespace string) []*unstructured.Unstructured {
	return list[*unstructured.Unstructured](v.snapshots, namespace)
}

// Snapshot returns a VolumeSnapshot, or nil.
func (v *View) Snapshot(namespace, name string) *unstructured.Unstructured {
	return get[unstructured.Unstructured](v.snapshots, namespace, name)
}

// SnapshotContents lists the VolumeSnapshotContents; nothing without operations.
func (v *View) SnapshotContents() []*unstructured.Unstructured {
	return list[*unstructured.Unstructured](v.contents, "")
}

// SnapshotContent returns a VolumeSnapshotContent, or nil.
func (v *View) SnapshotContent(name string) *unstructured.Unstructured {
	return get[unstructured.Unstructured](v.contents, "", name)
}

// GroupSnapshot returns a VolumeGroupSnapshot, or nil.
func (v *View) GroupSnapshot(namespace, name string) *unstructured.Unstructured {
	return get[unstructured.Unstructured](v.groups, namespace, name)
}
