// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// The kinds of external-snapshotter's API that are read. Those of groups have been served in
// several versions, of which all have what matters here: the first one that is served is read.
var (
	SnapshotVersions = []schema.GroupVersion{{Group: "snapshot.storage.k8s.io", Version: "v1"}}
	GroupVersions    = []schema.GroupVersion{
		{Group: "groupsnapshot.storage.k8s.io", Version: "v1"},
		{Group: "groupsnapshot.storage.k8s.io", Version: "v1beta2"},
		{Group: "groupsnapshot.storage.k8s.io", Version: "v1beta1"},
	}
)

// The resources and kinds of that API.
const (
	SnapshotResource = "volumesnapshotcontents"
	GroupResource    = "volumegroupsnapshotcontents"
	KindSnapshot     = "VolumeSnapshotContent"
	KindGroup        = "VolumeGroupSnapshotContent"
	kindClaim        = "PersistentVolumeClaim"
)

// memberAnnotation is on the VolumeSnapshotContents of a group's members: the driver is called
// for the group, and not for them (external-snapshotter pkg/utils).
const memberAnnotation = "groupsnapshot.storage.kubernetes.io/volumeGroupSnapshotHandle"

// maxMembers bounds how many volumes one group may name: as many as a ticket may.
const maxMembers = 256

// Object names the object that an operation is asked for by.
type Object struct{ APIVersion, Kind, Namespace, Name, UID string }

func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Work is an operation that is asked for and has not come to its end.
type Work struct {
	Operation ledger.Operation
	// Object asks for it, and owns the ticket. Told is the object of the user behind it, which
	// is told about it: the same, where the object is the user's own.
	Object, Told Object
	Created      int64 // creationTimestamp of Object, seconds

	// Of a snapshot: the driver, and its handles of the volumes; several of a group.
	Driver  string
	Handles []string
	Group   bool

	// Of a clone, the claim to clone; of an expansion, the claim itself.
	Claim ledger.ClaimKey
	// Outside says of a clone that its source is in another namespace.
	Outside bool
	// Infeasible says of an expansion that the driver has refused it for good, so that nothing
	// but another attempt now and then is to be expected.
	Infeasible bool

	// Progress changes when the operation has got further, though it is not at its end.
	Progress string
}

// SnapshotOf reads a VolumeSnapshotContent. False: there is nothing to be done for it. What has
// another shape than the API says reads as empty.
func SnapshotOf(o *unstructured.Unstructured) (Work, bool) {
	w := contentOf(o, KindSnapshot, "VolumeSnapshot", "volumeSnapshotRef")
	handle, _, _ := unstructured.NestedString(o.Object, "spec", "source", "volumeHandle")
	_, member := o.GetAnnotations()[memberAnnotation]
	if handle == "" || member || !underWay(o) {
		return Work{}, false
	}
	w.Handles = []string{handle}
	return w, true
}

// GroupOf reads a VolumeGroupSnapshotContent, as SnapshotOf does.
func GroupOf(o *unstructured.Unstructured) (Work, bool) {
	w := contentOf(o, KindGroup, "VolumeGroupSnapshot", "volumeGroupSnapshotRef")
	handles, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "source", "volumeHandles")
	if len(handles) == 0 || len(handles) > maxMembers || !underWay(o) {
		return Work{}, false
	}
	slices.Sort(handles)
	w.Handles, w.Group = slices.Compact(handles), true
	return w, true
}

// Ready says whether a content's snapshot has come to its end, as it should.
func Ready(o *unstructured.Unstructured) bool {
	ready, _, _ := unstructured.NestedBool(o.Object, "status", "readyToUse")
	return ready
}

func underWay(o *unstructured.Unstructured) bool { return o.GetDeletionTimestamp() == nil && !Ready(o) }

// contentOf is what the contents of single snapshots and of groups have in common.
func contentOf(o *unstructured.Unstructured, kind, told, ref string) Work {
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(o.Object, path...)
		return s
	}
	w := Work{
		Operation: ledger.OperationSnapshot,
		Object:    Object{APIVersion: o.GetAPIVersion(), Kind: kind, Name: o.GetName(), UID: string(o.GetUID())},
		Created:   o.GetCreationTimestamp().Unix(),
		Driver:    text("spec", "driver"),
	}
	w.Told = Object{APIVersion: o.GetAPIVersion(), Kind: told, Namespace: text("spec", ref, "namespace"), Name: text("spec", ref, "name"), UID: text("spec", ref, "uid")}
	if w.Told.Name == "" || w.Told.Namespace == "" {
		w.Told = w.Object
	}
	if _, cut, _ := unstructured.NestedFieldNoCopy(o.Object, "status", "creationTime"); cut {
		w.Progress = "cut"
	}
	return w
}

// ClaimOf reads a PersistentVolumeClaim: one that is to become a clone of another, or that is
// to be expanded, by the driver's controller. nil: it is neither.
func ClaimOf(c *corev1.PersistentVolumeClaim) *Work {
	if c.DeletionTimestamp != nil {
		return nil
	}
	w := Work{
		Object:  Object{APIVersion: "v1", Kind: kindClaim, Namespace: c.Namespace, Name: c.Name, UID: string(c.UID)},
		Created: c.CreationTimestamp.Unix(),
	}
	w.Told = w.Object
	switch c.Status.Phase {
	case corev1.ClaimBound:
		return expansionOf(c, w)
	case corev1.ClaimLost:
		return nil
	case corev1.ClaimPending:
	}
	return cloneOf(c, w)
}

func cloneOf(c *corev1.PersistentVolumeClaim, w Work) *Work {
	w.Operation = ledger.OperationClone
	w.Claim.Namespace = c.Namespace
	switch from, ref := c.Spec.DataSource, c.Spec.DataSourceRef; {
	case ref != nil:
		if ref.Kind != kindClaim || ref.APIGroup != nil && *ref.APIGroup != "" {
			return nil
		}
		w.Claim.Name = ref.Name
		if ref.Namespace != nil && *ref.Namespace != "" {
			w.Claim.Namespace = *ref.Namespace
		}
	case from != nil:
		if from.Kind != kindClaim || from.APIGroup != nil && *from.APIGroup != "" {
			return nil
		}
		w.Claim.Name = from.Name
	default:
		return nil
	}
	w.Outside = w.Claim.Namespace != c.Namespace
	return &w
}

// expansionOf says what is left for the driver's controller. What is left for a node is done at
// the next mount, and needs no ticket.
func expansionOf(c *corev1.PersistentVolumeClaim, w Work) *Work {
	wants, asked := c.Spec.Resources.Requests[corev1.ResourceStorage]
	has, known := c.Status.Capacity[corev1.ResourceStorage]
	if !asked || !known || wants.Cmp(has) <= 0 {
		return nil
	}
	switch c.Status.AllocatedResourceStatuses[corev1.ResourceStorage] {
	case corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress, corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return nil
	case corev1.PersistentVolumeClaimControllerResizeInfeasible:
		w.Infeasible = true
	case corev1.PersistentVolumeClaimControllerResizeInProgress:
	default: // nothing is said yet, or by a resizer that says it by a condition only
		if slices.ContainsFunc(c.Status.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
			return c.Type == corev1.PersistentVolumeClaimFileSystemResizePending && c.Status == corev1.ConditionTrue
		}) {
			return nil
		}
	}
	w.Operation = ledger.OperationExpansion
	w.Claim = ledger.ClaimKey{Namespace: c.Namespace, Name: c.Name}
	w.Progress = has.String()
	return &w
}
