// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func SnapshotResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}
}

func SnapshotContentResource() schema.GroupVersionResource {
	return SnapshotResource().GroupVersion().WithResource("volumesnapshotcontents")
}

func GroupSnapshotResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "groupsnapshot.storage.k8s.io", Version: "v1", Resource: "volumegroupsnapshots"}
}

func (v *View) Snapshots(namespace string) []*unstructured.Unstructured {
	return list[*unstructured.Unstructured](v.snapshots, namespace)
}

func (v *View) Snapshot(namespace, name string) *unstructured.Unstructured {
	return get[unstructured.Unstructured](v.snapshots, namespace, name)
}

func (v *View) SnapshotContents() []*unstructured.Unstructured {
	return list[*unstructured.Unstructured](v.contents, "")
}

func (v *View) SnapshotContent(name string) *unstructured.Unstructured {
	return get[unstructured.Unstructured](v.contents, "", name)
}

func (v *View) GroupSnapshot(namespace, name string) *unstructured.Unstructured {
	return get[unstructured.Unstructured](v.groups, namespace, name)
}
